"""The linear-chain conditional random field."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.heads.chain_scans import find_best_path, sum_paths

#: The label of a token that is not part of the chain, such as a padding token.
NO_LABEL = -1
#: The label of a token that is not part of this chain, but of the chain before or after it. The
#: start scores do not count after such a token, and the end scores do not count before one.
CONTINUED = -2
#: The score of a transition that is forbidden.
FORBIDDEN = -1e4


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ConditionalRandomField(ShapeKeepingLayer):
    """Scores for the first label of a chain, its last label, and each pair of neighbours.

    Calling the layer returns the emissions as float32. The call makes the layer a part of the
    model. The training minimises `negative_log_likelihood`.

    Args:
        num_classes: int C.
        allowed: nested lists of bool (C + 1, C + 1), or None to allow every path. `allowed[a][b]`
            says whether label b may follow label a. The index C stands for the border of the
            chain, so `allowed[C][b]` says whether a chain may begin with b. Decoding never gives a
            path that is not allowed.
        constrained_training: bool, whether the paths that are not allowed also have no probability
            in training. Then the labels must be allowed paths.

    Weights, all 0 at the start: `start_scores` (C,), `end_scores` (C,), `transitions` (C, C), from
    row to column.

    Example:
    ```python
    crf = ConditionalRandomField(3)
    emissions = crf(keras.layers.Dense(3)(hidden_states))
    losses = crf.negative_log_likelihood(labels, emissions)      # (B,)
    ```

    Source: Lample et al., 2016 (https://arxiv.org/abs/1603.01360), section 2.2.
    """

    def __init__(
        self,
        num_classes: int,
        *,
        allowed: Sequence[Sequence[bool]] | None = None,
        constrained_training: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if allowed is not None and np.shape(allowed) != (num_classes + 1, num_classes + 1):
            raise ValueError(
                f"allowed must have the shape {(num_classes + 1, num_classes + 1)}, a row and a "
                "column for each label, and the last ones for the border, got "
                f"{np.shape(allowed)}."
            )
        self.num_classes = num_classes
        self.allowed = None if allowed is None else np.array(allowed, bool).tolist()
        self.constrained_training = constrained_training

    def build(self, emissions_shape: Shape) -> None:
        c = self.num_classes
        if emissions_shape[-1] != c:
            raise ValueError(
                f"{self.name} is for {c} labels, got emissions of shape {tuple(emissions_shape)}. "
                f"The last axis must have the size {c}."
            )
        self.start_scores = self.add_weight((c,), initializer="zeros", name="start_scores")
        self.end_scores = self.add_weight((c,), initializer="zeros", name="end_scores")
        self.transitions = self.add_weight((c, c), initializer="zeros", name="transitions")

    def call(self, emissions: Tensor) -> Tensor:
        """Returns the emissions.

        Args:
            emissions: float (B, L, C).

        Returns:
            float (B, L, C) in the compute dtype.
        """
        return ops.cast(emissions, self.compute_dtype)

    def negative_log_likelihood(self, labels: Tensor, emissions: Tensor) -> Tensor:
        """The negative logarithm of the probability of the labels of each chain, in float32.

        Tokens with a negative label are skipped: the token after them follows the token before
        them. So a chain runs over words if only the first token of each word has a label.

        Args:
            labels: int (B, L), label ids, `NO_LABEL` or `CONTINUED`.
            emissions: float (B, L, C).

        Returns:
            float32 (B,), 0 for a chain without a label.
        """
        labels, lengths, (emissions,), (starts, ends, transitions) = self._arrange(
            labels, [emissions]
        )

        # The gradient of the logarithm of the sum is the difference of two expectations, so no
        # gradient goes through the scan.
        scores = (emissions, starts, ends, transitions)
        fixed = [ops.stop_gradient(score) for score in scores]
        log_partition, marginals, pairs = sum_paths(fixed[0], lengths, *fixed[1:])
        expected = _features(marginals, pairs, lengths)
        observed = _features(*self._count(labels, lengths), lengths)
        differences = [e - o for e, o in zip(expected, observed, strict=True)]
        value = log_partition - _weigh(observed, fixed)
        surrogate = _weigh([ops.stop_gradient(d) for d in differences], scores)
        return ops.stop_gradient(value - surrogate) + surrogate

    def divergence(
        self,
        labels: Tensor,
        emissions: Tensor,
        others: Tensor,
        crf: Any = None,
        temperature: float = 1.0,
    ) -> Tensor:
        """KL(p || q) of the distributions of chains that two tensors of emissions give.

        The sum over all chains of p (log p - log q) is the sum of the differences of all scores,
        weighted by how often they are expected under p, plus the difference of the logarithms of
        both sums.

        Args:
            labels: int (B, L), as for `negative_log_likelihood`. Only its signs are read: they say
                which tokens are part of the chain.
            emissions, others: float (B, L, C), of p and of q.
            crf: the layer with the other scores of p, such as a teacher's; None for this layer.
            temperature: float, by which all scores of p and of q are divided.

        Returns:
            float32 (B,), 0 for a chain without a label.
        """
        scores: list[list[Tensor]] = []
        found = []
        for layer, x in ((crf or self, emissions), (self, others)):
            _, lengths, (x,), further = layer._arrange(labels, [x])
            scores.append([score / temperature for score in (x, *further)])
            found.append(sum_paths(scores[-1][0], lengths, *scores[-1][1:]))
        (log_p, marginals, pairs), (log_q, *_) = found
        apart = [p - q for p, q in zip(*scores, strict=True)]
        return _weigh(_features(marginals, pairs, lengths), apart) - log_p + log_q

    def marginals(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """The probability of each label at each token, under the allowed paths.

        Args:
            emissions: float (B, L, C).
            lengths: int32 (B,), how many tokens at the front of a row are its chain.

        Returns:
            float32 (B, L, C), 0 behind the chain.
        """
        starts, ends, transitions = self._scores(True)
        emissions = ops.cast(emissions, "float32")
        lengths = ops.convert_to_tensor(lengths, "int32")
        zeros = ops.zeros_like(emissions[:, 0])
        return sum_paths(emissions, lengths, zeros + starts, zeros + ends, transitions)[1]

    def decode(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """The most probable allowed labels.

        Args:
            emissions, lengths: as for `marginals`.

        Returns:
            int32 (B, L), 0 behind the chain.
        """
        lengths = ops.convert_to_tensor(lengths, "int32")
        return find_best_path(ops.cast(emissions, "float32"), lengths, *self._scores(True))

    def read_scores(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """float32 arrays for decoding in NumPy: start scores, end scores and transitions."""
        return tuple(ops.convert_to_numpy(scores) for scores in self._scores(True))

    def _scores(self, constrained: bool) -> list[Tensor]:
        """float32 tensors: start scores (C,), end scores (C,), transitions (C, C)."""
        scores = [
            ops.cast(ops.convert_to_tensor(weight), "float32")
            for weight in (self.start_scores, self.end_scores, self.transitions)
        ]
        if self.allowed is None or not constrained:
            return scores
        allowed = np.array(self.allowed)
        tables = allowed[-1, :-1], allowed[:-1, -1], allowed[:-1, :-1]
        return [
            ops.where(table, score, FORBIDDEN) for table, score in zip(tables, scores, strict=True)
        ]

    def _arrange(self, labels: Tensor, emissions: Sequence[Tensor]) -> tuple[Any, ...]:
        """(labels, lengths, emissions, scores) with the tokens of the chains at the front.

        `scores` are the start scores and the end scores (B, C), and the transitions (C, C).
        """
        labels = ops.cast(labels, "int32")
        counts = labels >= 0
        lengths = ops.sum(ops.cast(counts, "int32"), axis=1)
        order = order_chain(counts)
        goes_on = _find_continuations(labels, counts)
        labels = ops.maximum(ops.take_along_axis(labels, order, axis=1), 0)
        emissions = [
            ops.take_along_axis(ops.cast(x, "float32"), order[:, :, None], axis=1)
            for x in emissions
        ]
        starts, ends, transitions = self._scores(self.constrained_training)
        starts, ends = (
            ops.where(mark[:, None], 0.0, scores)
            for mark, scores in zip(goes_on, (starts, ends), strict=True)
        )
        return labels, lengths, emissions, (starts, ends, transitions)

    def _count(self, labels: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Counts the labels of a path: (B, L, C) each label at its token, and (B, C, C) each pair.

        `sum_paths` has the same two arrays, as means over all paths.
        """
        inside = ops.arange(ops.shape(labels)[1], dtype="int32")[None, :] < lengths[:, None]
        marginals = ops.one_hot(labels, self.num_classes, dtype="float32")
        marginals = ops.where(inside[:, :, None], marginals, 0.0)
        # Behind the chain a label is followed by nothing, which is a row of zeros.
        return marginals, ops.matmul(ops.transpose(marginals[:, :-1], (0, 2, 1)), marginals[:, 1:])


def order_chain(counts: Tensor) -> Tensor:
    """Where the tokens of each chain are, in their order, and then the other tokens, int32 (B, L).

    `counts` is bool (B, L), whether a token is part of the chain.
    """
    length = ops.shape(counts)[1]
    position = ops.arange(length, dtype="int32")[None, :]
    keys = ops.where(counts, position, position + length)
    return ops.cast(ops.argsort(keys, axis=1), "int32")


def _features(marginals: Tensor, pairs: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """The count of each score in a path, or in the mean of all paths."""
    last = ops.maximum(lengths - 1, 0)[:, None, None]
    return marginals, marginals[:, 0], ops.take_along_axis(marginals, last, axis=1)[:, 0], pairs


def _weigh(features: Sequence[Tensor], scores: Sequence[Tensor]) -> Tensor:
    """float32 (B,), the sum of scores times features."""
    axes = ((1, 2), 1, 1, (1, 2))
    return sum(
        ops.sum(feature * score, axis=axis)
        for feature, score, axis in zip(features, scores, axes, strict=True)
    )


def _find_continuations(labels: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """bool (B,) twice: whether a chain continues before its first token, and after its last."""
    length = ops.shape(labels)[1]
    position = ops.arange(length, dtype="int32")[None, :]
    first = ops.min(ops.where(counts, position, length), axis=1, keepdims=True)
    last = ops.max(ops.where(counts, position, -1), axis=1, keepdims=True)
    continued = labels == CONTINUED
    return (
        ops.any(ops.logical_and(continued, position < first), axis=1),
        ops.any(ops.logical_and(continued, position > last), axis=1),
    )
