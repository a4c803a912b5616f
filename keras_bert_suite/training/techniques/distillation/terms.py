"""What a student learns of the hidden states and the attention of a teacher."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import (
    check_choice,
    check_integer,
    check_list,
    check_positive,
    list_arguments,
)
from keras_bert_suite.replicas import sum_over_replicas
from keras_bert_suite.training.embedding_losses import measure_cosines


class SeenRows(NamedTuple):
    """What a term reads of a model for the rows of a batch.

    Attributes:
        inner: the `InnerStates` of the model, which knows its layers.
        states: list of float (B, L, H), the embeddings and the output of each layer.
        tokens: float32 (B, L), 1 on tokens and 0 on padding.
        visible: bool, broadcastable to (B, heads, L, L), whether a token may attend to another.
    """

    inner: Any
    states: Sequence[Tensor]
    tokens: Tensor
    visible: Tensor

    def project(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of layer `index`, float32 (B, heads, L, D)."""
        parts = self.inner.project(index, self.states[index])
        return tuple(ops.cast(part, "float32") for part in parts)

    def mean_over_tokens(self, values: Tensor) -> Tensor:
        """The share of a replica in the mean of float32 (B, L) over the tokens of a batch."""
        return ops.sum(values * self.tokens) / sum_over_replicas(ops.sum(self.tokens))


class DistillationTerm:
    """A term in the loss of a `Distillation`.

    A subclass keeps each argument of its constructor in an attribute of its name, and is registered
    with `keras.saving.register_keras_serializable`.
    """

    weight: float = 1.0
    #: A layer of the term, which the optimizer trains; None without one.
    projection: keras.layers.Layer | None = None

    def build(self, student: Any, teacher: Any) -> None:
        """Pairs the layers of two `InnerStates`, on a copy for one student.

        Raises:
            ValueError: if they do not fit.
        """

    def compare(self, student: SeenRows, teacher: SeenRows) -> Tensor:
        """float32 scalar, without the `weight`. Its sum over the replicas is that of the batch."""
        raise NotImplementedError

    def get_config(self) -> Config:
        return {name: getattr(self, name) for name in list_arguments(type(self))}

    @classmethod
    def from_config(cls, config: Config) -> Any:
        return cls(**config)


Layers = str | Mapping[int, int] | Sequence[Sequence[int]]


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class HiddenStates(DistillationTerm):
    """The distance of hidden states of the student from those of the teacher, summed over layers.

    Of each pair of layers, the mean over the tokens of the batch. If the widths differ, a linear
    layer projects the states of the student. It is of the technique: trained with the student,
    saved in checkpoints, and in no preset. All pairs share it, as in TinyBERT.

    Deviation: TinyBERT's code takes the mean over padding, too.

    Args:
        layers: pairs of layers, as a dict {layer of the student: layer of the teacher}. 0 stands
            for the embeddings, and i for the output of the i-th layer. "uniform" pairs the
            embeddings, and each layer i with the layer i k, where the teacher has k times as many.
            "last" pairs the last layers alone.
        distance: "squares", the mean squared difference; or "cosine", 1 minus the cosine.
        weight: float above 0.

    Raises:
        ValueError: from `compile`, if a layer is not there, or widths differ with "cosine" of
            layers that have no projection.

    Example:
    ```python
    terms = [kbs.HiddenStates("last", distance="cosine")]                       # DistilBERT
    terms = [kbs.HiddenStates(), kbs.AttentionScores()]                         # TinyBERT, stage 1
    ```

    Source: Jiao et al., 2019, TinyBERT (https://arxiv.org/abs/1909.10351), equations 8 and 9; Sanh
        et al., 2019, DistilBERT (https://arxiv.org/abs/1910.01108), section 2.
    """

    def __init__(
        self, layers: Layers = "uniform", distance: str = "squares", weight: float = 1.0
    ) -> None:
        check_choice("distance", distance, ("squares", "cosine"))
        check_positive("weight", weight)
        self.layers, self.distance, self.weight = read_layers(layers), distance, weight

    def build(self, student: Any, teacher: Any) -> None:
        self.pairs = pair_layers(self, student, teacher, first=0)
        widths = {(student.widths[s], teacher.widths[t]) for s, t in self.pairs}
        if all(own == other for own, other in widths):
            return
        if len(widths) > 1:
            raise ValueError(
                f"HiddenStates projects all layers by one matrix, and its pairs {dict(self.pairs)} "
                f"have the widths {sorted(widths)} of student and teacher. Pass a HiddenStates for "
                "each pair of widths."
            )
        ((own, other),) = widths
        self.projection = keras.layers.Dense(
            other,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            dtype="float32",
            name="distillation_projection",
        )
        self.projection.build((None, None, own))

    def compare(self, student: SeenRows, teacher: SeenRows) -> Tensor:
        total = 0.0
        for s, t in self.pairs:
            own, other = (ops.cast(x, "float32") for x in (student.states[s], teacher.states[t]))
            if self.projection is not None:
                own = self.projection(own)
            if self.distance == "squares":
                apart = ops.mean(ops.square(own - other), axis=-1)
            else:
                apart = 1 - measure_cosines(own, other)
            total = total + student.mean_over_tokens(apart)
        return total


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AttentionScores(DistillationTerm):
    """The squared difference of the attention scores of student and teacher, summed over layers.

    The scores are Q K^T / sqrt(D), before softmax. Of each pair of layers, the mean over the heads
    and the pairs of tokens. They are computed from the hidden states, for the layers of the pairs
    alone: the attention itself takes the fast kernel.

    Deviation: TinyBERT's code takes the mean over padding, too, where the differences are 0.

    Args:
        layers: pairs of layers, as a dict {layer of the student: layer of the teacher}, from 0.
            "uniform" pairs each layer i with the layer (i + 1) k - 1, where the teacher has k times
            as many. "last" pairs the last layers alone.
        weight: float above 0.

    Raises:
        ValueError: from `compile`, if a layer is not there, has another number of heads, or does
            not give its scores.

    Source: Jiao et al., 2019, TinyBERT (https://arxiv.org/abs/1909.10351), equation 7, and the
        authors' code.
    """

    def __init__(self, layers: Layers = "uniform", weight: float = 1.0) -> None:
        check_positive("weight", weight)
        self.layers, self.weight = read_layers(layers), weight

    def build(self, student: Any, teacher: Any) -> None:
        self.pairs = pair_layers(self, student, teacher, first=1)
        check_heads(self, student, teacher)

    def compare(self, student: SeenRows, teacher: SeenRows) -> Tensor:
        total = 0.0
        for s, t in self.pairs:
            (q, k, _), (other_q, other_k, _) = student.project(s), teacher.project(t)
            apart = ops.square(_compare_tokens(q, k) - _compare_tokens(other_q, other_k))
            counts = ops.cast(student.visible, "float32") * student.tokens[:, None, :, None]
            counts = ops.broadcast_to(counts, ops.shape(apart))
            total = total + ops.sum(apart * counts) / sum_over_replicas(ops.sum(counts))
        return total


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AttentionRelations(DistillationTerm):
    """The divergence of the relations between tokens, in one layer of student and teacher.

    A relation of two of queries, keys and values is the softmax of their scaled products, as
    attention is that of queries and keys. Of each relation KL(teacher || student) counts, the mean
    over the heads and the tokens. The widths of student and teacher may differ.

    Args:
        relations: list of pairs of letters. ["qk", "vv"] is MiniLM, attention and the relation of
            values; ["qq", "kk", "vv"] is MiniLMv2.
        num_heads: int, into which queries, keys and values are cut for the relations; None for the
            heads of the attention, of which both must then have as many.
        layers: as for `AttentionScores`. MiniLM takes the last layers; MiniLMv2 a layer before the
            last of a large teacher, such as {5: 20} of 24.
        weight: float above 0.

    Raises:
        ValueError: from `compile`, if a layer is not there, does not give its scores, or has a
            width that `num_heads` does not divide.

    Source: Wang et al., 2020, MiniLM (https://arxiv.org/abs/2002.10957), equations 4 to 7, and
        MiniLMv2 (https://arxiv.org/abs/2012.15828), equations 6 to 9.
    """

    def __init__(
        self,
        relations: Sequence[str] = ("qq", "kk", "vv"),
        num_heads: int | None = None,
        layers: Layers = "last",
        weight: float = 1.0,
    ) -> None:
        check_list("relations", relations, "pairs of letters such as 'qk'")
        for relation in relations:
            is_pair = isinstance(relation, str) and len(relation) == 2
            if not is_pair or not set(relation) <= set("qkv"):
                raise ValueError(
                    "relations are pairs of the letters q, k and v, such as 'qk', got "
                    f"{relation!r}."
                )
        if not relations:
            raise ValueError(f"relations must be a list such as ['qk', 'vv'], got {relations!r}.")
        if num_heads is not None:
            check_integer("num_heads", num_heads, at_least=1)
        check_positive("weight", weight)
        self.relations, self.num_heads = list(relations), num_heads
        self.layers, self.weight = read_layers(layers), weight

    def build(self, student: Any, teacher: Any) -> None:
        self.pairs = pair_layers(self, student, teacher, first=1)
        if self.num_heads is None:
            check_heads(self, student, teacher)
            return
        for name, inner, place in (("student", student, 0), ("teacher", teacher, 1)):
            for pair in self.pairs:
                inner.count_heads(pair[place])
                if (width := inner.count_features(pair[place])) % self.num_heads:
                    raise ValueError(
                        f"num_heads={self.num_heads} of AttentionRelations must divide the width "
                        f"of both models, and the {name} has {width}. Pass a divisor of both."
                    )

    def compare(self, student: SeenRows, teacher: SeenRows) -> Tensor:
        total = 0.0
        for s, t in self.pairs:
            own, other = (
                dict(zip("qkv", map(self._cut, seen.project(index)), strict=True))
                for seen, index in ((student, s), (teacher, t))
            )
            for relation in self.relations:
                a, b = relation[0], relation[1]
                p, q = (
                    ops.log_softmax(
                        ops.where(student.visible, _compare_tokens(x[a], x[b]), -1e9), axis=-1
                    )
                    for x in (other, own)
                )
                apart = ops.sum(ops.exp(p) * (p - q), axis=-1)
                total = total + student.mean_over_tokens(ops.mean(apart, axis=1))
        return total

    def _cut(self, x: Tensor) -> Tensor:
        """float (B, heads, L, D) -> (B, num_heads, L, ...)."""
        if self.num_heads is None:
            return x
        _, heads, _, size = x.shape
        x = ops.swapaxes(x, 1, 2)
        shape = (-1, ops.shape(x)[1], self.num_heads, heads * size // self.num_heads)
        return ops.swapaxes(ops.reshape(x, shape), 1, 2)


def read_layers(layers: Any) -> Any:
    """The argument `layers` as JSON keeps it: a name, or a list of pairs."""
    if isinstance(layers, str):
        check_choice("layers", layers, ("uniform", "last"))
        return layers
    pairs = layers.items() if isinstance(layers, Mapping) else layers
    pairs = pairs if isinstance(pairs, Iterable) else [layers]
    pairs = [list(pair) if isinstance(pair, Iterable) else [pair] for pair in pairs]
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(
                "layers must be 'uniform', 'last', or a dict {layer of the student: layer of the "
                f"teacher}}, got {layers!r}."
            )
        for number in pair:
            check_integer("a layer", number)
    if not pairs:
        raise ValueError("layers has no pair. Leave the term out, or pass a pair such as {1: 2}.")
    return pairs


def pair_layers(term: Any, student: Any, teacher: Any, first: int) -> list[tuple[int, int]]:
    """The pairs of layers of a term.

    `first` is 0 if the layers are hidden states, of which the first are the embeddings, and 1 if
    they are layers from 0 on.
    """
    name, own, other = type(term).__name__, student.num_layers, teacher.num_layers
    if term.layers == "last":
        return [(own - first, other - first)]
    if term.layers == "uniform":
        if other % own:
            raise ValueError(
                f"{name} pairs layers evenly, and the student has {own} and the teacher {other}, "
                f"which is no multiple. Pass pairs, such as layers={{{own - first}: "
                f"{other - first}}}."
            )
        step = other // own
        return [(i - first, i * step - first) for i in range(first, own + 1)]
    for s, t in term.layers:
        if s > own - first or t > other - first:
            raise ValueError(
                f"{name} pairs layer {s} of the student with layer {t} of the teacher. The student "
                f"has the layers 0 to {own - first}, and the teacher 0 to {other - first}."
            )
    return [(s, t) for s, t in term.layers]


def check_heads(term: Any, student: Any, teacher: Any) -> None:
    """Raises a ValueError if paired layers have other numbers of heads, or give no scores."""
    for s, t in term.pairs:
        own, other = student.count_heads(s), teacher.count_heads(t)
        if own != other:
            raise ValueError(
                f"{type(term).__name__} compares the heads of layer {s} of the student, {own}, "
                f"with those of layer {t} of the teacher, {other}. Build a student with {other} "
                "heads, or take AttentionRelations(num_heads=...), which cuts both into as many."
            )


def _compare_tokens(a: Tensor, b: Tensor) -> Tensor:
    """float (B, heads, L, L), the scaled products of two of (B, heads, L, D)."""
    return ops.matmul(a, ops.swapaxes(b, -1, -2)) / a.shape[-1] ** 0.5
