"""Self-attention with functional relative positions."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.attention_kernels import normalize_scores
from keras_bert_suite.layers.attention.rotary_positions import (
    compute_sinusoids,
    count_positions,
    rotate_pairs,
)
from keras_bert_suite.layers.attention.self_attention import SelfAttention, expand_attention_mask
from keras_bert_suite.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RelativeAttention(SelfAttention):
    """Self-attention whose keys and values depend on how far they are from the query.

    A query at position i sees the key and the value at position j plus the vector
    `sinusoids(clip(j - i, -M, M) + M)` of the width of a head, where M is
    `max_relative_position`. It has no weights.

    The vectors of all pairs of positions would be (L, L, D), and for packed rows one such tensor
    for each row. They are never made. A sinusoid of a sum is a rotation of a sinusoid:
    `sinusoids(j + (M - i))` is `sinusoids(j)`, turned by `M - i`. So within the distance M the
    scores are a product of turned queries and `sinusoids(j)`, and the sum over the values is turned
    afterwards. Beyond the distance M, there is one vector on each side. No kernel of a backend adds
    such terms, so the formula is always computed plainly.

    Args:
        num_heads: int. The width D of a head must be even.
        max_relative_position: int M.
        **kwargs: other arguments of `SelfAttention`.

    Source: Wei et al., 2019 (https://arxiv.org/abs/1909.00204), section 2.1.
    """

    #: A mask of pairs is always needed.
    takes_buckets = False
    takes_source = False
    has_even_heads = True

    def __init__(self, num_heads: int, max_relative_position: int = 64, **kwargs: Any) -> None:
        super().__init__(num_heads, **kwargs)
        self.max_relative_position = max_relative_position

    def call(  # type: ignore[override]  # A source would need vectors of other distances.
        self,
        hidden: Tensor,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Lets each position attend to the positions that its mask allows.

        Args, Returns: as for `SelfAttention.call`, without buckets and without a source.
        """
        query, key, value = self.project(hidden)
        positions = count_positions(hidden) if positions is None else positions
        probabilities = self._compare(query, key, positions, attention_mask)
        probabilities = ops.cast(probabilities, value.dtype)
        if training and self.dropout:
            probabilities = self.probability_dropout(probabilities, training=True)
        context = ops.matmul(probabilities, value) + self._sum_relative(probabilities, positions)
        return self.merge(context)

    def compute_probabilities(self, hidden: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """As `SelfAttention.compute_probabilities`, of tokens at the positions 0 to L - 1."""
        query, key, _ = self.project(hidden)
        return self._compare(query, key, count_positions(hidden), attention_mask)

    def _compare(
        self, query: Tensor, key: Tensor, positions: Tensor, attention_mask: Tensor | None
    ) -> Tensor:
        """The probabilities, float32 (B, heads, L, L), of queries and keys (B, heads, L, D)."""
        limit, dim = self.max_relative_position, query.shape[-1]
        query = query * dim**-0.5
        turned = rotate_pairs(query, limit - positions)
        sinusoids = ops.cast(compute_sinusoids(positions, dim), query.dtype)[:, None]
        near = ops.matmul(turned, ops.swapaxes(sinusoids, -1, -2))
        behind, ahead = (
            ops.matmul(query, ops.cast(compute_sinusoids(at, dim), query.dtype)[:, None])
            for at in (ops.convert_to_tensor(0), ops.convert_to_tensor(2 * limit))
        )
        distances = _measure_distances(positions)
        relative = ops.where(distances < -limit, behind, ops.where(distances > limit, ahead, near))
        scores = ops.matmul(query, ops.swapaxes(key, -1, -2)) + relative
        return normalize_scores(scores, expand_attention_mask(attention_mask))

    def _sum_relative(self, probabilities: Tensor, positions: Tensor) -> Tensor:
        """The mean of the vectors of distances, (B, heads, L, D), by probabilities of keys."""
        limit, dim = self.max_relative_position, self.query.units // self.num_heads
        distances = _measure_distances(positions)
        is_behind, is_ahead = distances < -limit, distances > limit
        near = ops.where(ops.logical_or(is_behind, is_ahead), 0, probabilities)
        sinusoids = ops.cast(compute_sinusoids(positions, dim), probabilities.dtype)[:, None]
        total = rotate_pairs(ops.matmul(near, sinusoids), positions - limit)
        for is_far, at in ((is_behind, 0), (is_ahead, 2 * limit)):
            vector = ops.cast(compute_sinusoids(ops.convert_to_tensor(at), dim), total.dtype)
            share = ops.sum(ops.where(is_far, probabilities, 0), axis=-1, keepdims=True)
            total = total + share * vector
        return total


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RelativeBlock(TransformerBlock):
    """`TransformerBlock` with `RelativeAttention`.

    Args:
        num_heads, intermediate_dim: as for `TransformerBlock`.
        max_relative_position: as for `RelativeAttention`.
        **kwargs: other arguments of `TransformerBlock`.
    """

    def __init__(
        self, num_heads: int, intermediate_dim: int, max_relative_position: int = 64, **kwargs: Any
    ) -> None:
        self.max_relative_position = max_relative_position
        super().__init__(num_heads, intermediate_dim, **kwargs)

    def make_attention(self, **arguments: Any) -> RelativeAttention:
        """Makes the attention layer from the arguments of `SelfAttention`."""
        return RelativeAttention(max_relative_position=self.max_relative_position, **arguments)


def _measure_distances(positions: Tensor) -> Tensor:
    """int32 (1 or B, 1, L, L), the position of each key minus the position of each query."""
    return (positions[:, None, :] - positions[:, :, None])[:, None]
