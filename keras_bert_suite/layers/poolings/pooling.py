"""Layers that turn the hidden states of a text into one vector."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.companions import PROMPT_ARGUMENT, CompanionReader
from keras_bert_suite.layers.configured_layer import ConfiguredLayer


class VectorPooling(ConfiguredLayer):
    """A pooling whose vectors have the width of the hidden states."""

    def compute_output_shape(self, sequence_output_shape: Shape, *_: Shape) -> Shape:
        return (sequence_output_shape[0], sequence_output_shape[-1])


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MeanPooling(VectorPooling):
    """The mean of the hidden states of the tokens, without padding."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states.

        Args:
            sequence_output: float (B, L, H).
            padding_mask: int or bool (B, L), 0 on padding.

        Returns:
            float (B, H). The sum is computed in float32.
        """
        weights = self.weigh(ops.cast(ops.cast(padding_mask, "bool"), "float32"))
        total = ops.sum(ops.cast(sequence_output, "float32") * weights[:, :, None], axis=1)
        # A row without a token has the vector 0.
        number = ops.maximum(ops.sum(weights, axis=1, keepdims=True), 1.0)
        return ops.cast(total / number, self.compute_dtype)

    def weigh(self, mask: Tensor) -> Tensor:
        """float32 (B, L), the weights of the tokens, from the mask float32 (B, L)."""
        return mask


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class WeightedMeanPooling(MeanPooling):
    """A mean of the hidden states of the tokens in which the token at place i has the weight i + 1.

    Source: Muennighoff, 2022, SGPT (https://arxiv.org/abs/2202.08904), section 3.1.
    """

    def weigh(self, mask: Tensor) -> Tensor:
        return ops.cumsum(ops.ones_like(mask), axis=1) * mask


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaxPooling(VectorPooling):
    """The maximum of each feature over the tokens, without padding."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states. Arguments and result: see `MeanPooling.call`."""
        is_token = ops.cast(padding_mask, "bool")[:, :, None]
        # It is the lowest number that float16 has, too.
        return ops.max(ops.where(is_token, sequence_output, -65504.0), axis=1)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FirstTokenPooling(VectorPooling):
    """The hidden state of the first token, BERT's [CLS]."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states. Arguments and result: see `MeanPooling.call`."""
        return sequence_output[:, 0, :]


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LastTokenPooling(VectorPooling):
    """The hidden state of the last token that is not padding, XLNet's <cls>."""

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states. Arguments and result: see `MeanPooling.call`."""
        # The number of tokens up to a place is largest, for the first time, at the last token.
        counts = ops.cumsum(ops.cast(padding_mask, "int32"), axis=1)
        last = ops.argmax(counts, axis=1)[:, None, None]
        return ops.take_along_axis(sequence_output, last, axis=1)[:, 0, :]


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FirstLastPooling(MeanPooling):
    """The mean over the tokens of the first and of the last transformer layer's hidden states.

    Source: Su et al., 2021 (https://arxiv.org/abs/2103.15316), section 4.1, "first-last-avg".
    """

    #: A task calls such a layer with the embeddings and the outputs of all transformer layers.
    takes_hidden_states = True

    def call(self, hidden_states: Sequence[Tensor], padding_mask: Tensor) -> Tensor:
        """Pools hidden states (B, L, H): the embeddings, and the output of each transformer layer.

        The result is float (B, H). The sum is computed in float32.
        """
        first, last = (ops.cast(hidden_states[i], "float32") for i in (1, -1))
        return super().call((first + last) / 2.0, padding_mask)

    def compute_output_shape(self, hidden_states_shape: Sequence[Shape], *_: Shape) -> Shape:
        return (hidden_states_shape[0][0], hidden_states_shape[0][-1])


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ConcatenatedPooling(ConfiguredLayer):
    """The vectors of several poolings, one after the other.

    Args:
        poolings: list of names in `POOLINGS`, of poolings of the last layer's hidden states.
    """

    def __init__(self, poolings: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        wrong = [name for name in poolings if name not in POOLINGS or name == "first_last_average"]
        if wrong or not poolings:
            raise ValueError(
                "Poolings of the last layer are concatenated: "
                f"{', '.join(name for name in POOLINGS if name != 'first_last_average')}; got "
                f"{list(poolings)!r}."
            )
        self.poolings: list[str | None] = [*poolings]
        self.parts: list[VectorPooling] = [
            POOLINGS[name](dtype=self.dtype_policy) for name in poolings
        ]

    def build(self, sequence_output_shape: Shape, padding_mask_shape: Shape | None = None) -> None:
        for part in self.parts:
            part.build(sequence_output_shape)

    def call(self, sequence_output: Tensor, padding_mask: Tensor) -> Tensor:
        """Pools hidden states, float (B, L, H) with the mask (B, L), to float (B, P H)."""
        return ops.concatenate(
            [part(sequence_output, padding_mask) for part in self.parts], axis=-1
        )

    def compute_output_shape(self, sequence_output_shape: Shape, *_: Shape) -> Shape:
        return (sequence_output_shape[0], len(self.poolings) * sequence_output_shape[-1])


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PromptlessPooling(CompanionReader, ConfiguredLayer):
    """A pooling without the tokens of a prompt, which are read and not pooled.

    Their number comes with the batch, as `prompt_length` of `PackedSequences`.
    `TextEmbedder.predict(texts, prompt=name)` gives it.

    Args:
        pooling: as for `get_pooling`: the pooling of the other tokens.

    Source: `include_prompt` of the Pooling of sentence-transformers, as Su et al., 2022, INSTRUCTOR
    (https://arxiv.org/abs/2212.09741) pool.
    """

    companions = (PROMPT_ARGUMENT,)

    def __init__(self, pooling: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pooling = get_pooling(pooling, dtype=self.dtype_policy.name)
        self.takes_hidden_states = getattr(self.pooling, "takes_hidden_states", False)

    def build(self, sequence_output_shape: Shape, padding_mask_shape: Shape | None = None) -> None:
        self.pooling.build(sequence_output_shape)

    def call(
        self, sequence_output: Tensor, padding_mask: Tensor, prompt_length: Tensor | None = None
    ) -> Tensor:
        """Pools hidden states.

        Args:
            sequence_output, padding_mask: see `MeanPooling.call`.
            prompt_length: int (B,), the tokens that are left out at the beginning of each row, or
                None.
        """
        if prompt_length is not None:
            places = ops.cumsum(ops.ones_like(padding_mask, dtype="int32"), axis=1)
            is_text = places > ops.cast(prompt_length, "int32")[:, None]
            mask = ops.logical_and(ops.cast(padding_mask, "bool"), is_text)
            padding_mask = ops.cast(mask, "int32")
        return self.pooling(sequence_output, padding_mask)

    def compute_output_shape(
        self, sequence_output_shape: Shape, padding_mask_shape: Shape | None = None
    ) -> Shape:
        return self.pooling.compute_output_shape(sequence_output_shape, padding_mask_shape)


#: The names of pooling layers, and their classes.
POOLINGS = {
    "mean": MeanPooling,
    "cls": FirstTokenPooling,
    "last": LastTokenPooling,
    "max": MaxPooling,
    "weighted_mean": WeightedMeanPooling,
    "first_last_average": FirstLastPooling,
}

#: The place of the summary token in a row -> the pooling "cls" of its hidden state.
SUMMARY_POOLINGS = {"first": FirstTokenPooling, "last": LastTokenPooling}


def get_pooling(
    pooling: str | Sequence[str] | Mapping[str, Any] | keras.layers.Layer,
    summary_place: str | None = "first",
    **kwargs: Any,
) -> keras.layers.Layer:
    """The pooling layer of an argument `pooling`.

    It is a name in `POOLINGS`, several names to concatenate the poolings, a layer, or the
    configuration of a layer. Otherwise it is a ValueError. `summary_place` is "first" or "last",
    the token that "cls" pools; None makes "cls" a ValueError. `kwargs` are `dtype` and `name` of a
    layer given by its name.
    """
    if summary_place is None:
        if "cls" in (pooling if isinstance(pooling, list | tuple) else [pooling]):
            raise ValueError(
                "pooling='cls' pools the token that stands for a row, and this encoder has no such "
                "token. Pass 'mean' or another pooling, or set `summary_place` of the encoder."
            )
        summary_place = "first"
    if pooling == "cls":
        return SUMMARY_POOLINGS[summary_place](**kwargs)
    if isinstance(pooling, str) and pooling in POOLINGS:
        return POOLINGS[pooling](**kwargs)
    if isinstance(pooling, list | tuple):
        is_last = summary_place == "last"
        names = ["last" if is_last and name == "cls" else name for name in pooling]
        return ConcatenatedPooling(names, **kwargs)
    if isinstance(pooling, Mapping):
        return keras.layers.deserialize(dict(pooling))
    if isinstance(pooling, keras.layers.Layer):
        return pooling
    raise ValueError(
        f"pooling must be one of {', '.join(POOLINGS)}, a list of them, or a layer, got "
        f"{pooling!r}. A layer is called with the sequence output (B, L, H) and the padding mask "
        "(B, L)."
    )


def take_summary(
    sequence_output: Tensor,
    padding_mask: Tensor,
    summary_place: str = "first",
    name: str = "summary",
) -> Tensor:
    """Symbolic float (B, H), the state of the "first" or "last" token of rows (B, L, H).

    `name` is that of the layer which finds the last token.
    """
    if summary_place == "first":
        return sequence_output[:, 0, :]
    pooling = SUMMARY_POOLINGS[summary_place](dtype=sequence_output.dtype, name=name)
    return pooling(sequence_output, padding_mask)


def call_pooling(pooling: keras.layers.Layer, states: Any, padding_mask: Tensor) -> Any:
    """Calls a pooling layer with hidden states and the padding mask.

    A layer whose `call` has an argument `mask` gets the mask by this name, as layers of Keras do:
    the second argument of an LSTM is its initial state.
    """
    if "mask" in inspect.signature(pooling.call).parameters:
        return pooling(states, mask=padding_mask)
    return pooling(states, padding_mask)


def name_pooling(layer: keras.layers.Layer) -> str | None:
    """The name of a pooling layer in `POOLINGS`, or None."""
    return next((name for name, kind in POOLINGS.items() if type(layer) is kind), None)


def name_poolings(layer: keras.layers.Layer) -> list[str | None]:
    """The names of the poolings whose vectors a layer concatenates; None for another layer."""
    layer = layer.pooling if isinstance(layer, PromptlessPooling) else layer
    return layer.poolings if isinstance(layer, ConcatenatedPooling) else [name_pooling(layer)]
