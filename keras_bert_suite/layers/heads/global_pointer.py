"""Layers that score every span of tokens for every type of entity."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.rotary_positions import rotate_positions
from keras_bert_suite.layers.configured_layer import ConfiguredLayer

#: The score of a span that ends before it begins, or that touches padding.
NO_SPAN = -1e12


class _SpanScorer(ConfiguredLayer):
    """The common part of the two layers: their arguments, and the spans that have no score."""

    def __init__(
        self, num_classes: int, *, head_dim: int = 64, rotary: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if head_dim < 2 or head_dim % 2:
            raise ValueError(f"head_dim must be an even number of at least 2, got {head_dim}.")
        self.num_classes = num_classes
        self.head_dim = head_dim
        self.rotary = rotary

    def compute_output_shape(
        self, sequence_shape: Shape, padding_mask_shape: Shape | None = None
    ) -> Shape:
        batch, length, _ = sequence_shape
        return batch, self.num_classes, length, length

    def _dense(self, units: int, name: str) -> keras.layers.Dense:
        return keras.layers.Dense(
            units, kernel_initializer="lecun_normal", dtype=self.dtype_policy, name=name
        )

    def _place(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys (B, L, ..., D) in float32, which know their positions if `rotary`."""
        if self.rotary:
            return rotate_positions(queries), rotate_positions(keys)
        return ops.cast(queries, "float32"), ops.cast(keys, "float32")

    def _leave_out(self, scores: Tensor, padding_mask: Tensor) -> Tensor:
        """Gives `NO_SPAN` to the pairs of tokens that are no span. Scores: (B, C, L, L)."""
        position = ops.arange(ops.shape(scores)[-1], dtype="int32")
        is_token = ops.cast(padding_mask, "bool")
        is_span = ops.logical_and(is_token[:, None, :, None], is_token[:, None, None, :])
        is_span = ops.logical_and(is_span, position[:, None] <= position[None, :])
        return ops.where(is_span, scores, NO_SPAN)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class GlobalPointer(_SpanScorer):
    """A query and a key of each token for each type of entity.

    s_c(i, j) = R_i q_c,i . R_j k_c,j / sqrt(D), with q_c,i = W_q,c h_i + b_q,c, and k likewise. R
    turns a vector by its position. A span is an entity if its score is above 0.

    The paper does not divide by sqrt(D). The authors' code does.

    Args:
        num_classes: int C, the types of entities.
        head_dim: int D, even.
        rotary: bool, whether the scores know how far apart the two tokens are. Without it,
            the layer joins the beginning of an entity to the end of another.

    Source: Su et al., 2022 (https://arxiv.org/abs/2208.03054), section 3.1;
    bojone/bert4keras, layers.py, `GlobalPointer`.
    """

    def build(self, sequence_shape: Shape, padding_mask_shape: Shape | None = None) -> None:
        self.dense = self._dense(2 * self.num_classes * self.head_dim, "dense")
        self.dense.build(sequence_shape)

    def call(self, sequence: Tensor, padding_mask: Tensor) -> Tensor:
        """Scores the spans.

        Args:
            sequence: float (B, L, H).
            padding_mask: int or bool (B, L), 0 on padding.

        Returns:
            float32 (B, C, L, L), by the first and the last token of a span; `NO_SPAN` for pairs of
            tokens that are no span.
        """
        batch, length = ops.shape(sequence)[:2]
        vectors = ops.reshape(
            self.dense(sequence), (batch, length, self.num_classes, 2 * self.head_dim)
        )
        queries, keys = vectors[..., : self.head_dim], vectors[..., self.head_dim :]
        queries, keys = self._place(queries, keys)
        scores = ops.einsum("bmcd,bncd->bcmn", queries, keys) / self.head_dim**0.5
        return self._leave_out(scores, padding_mask)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class EfficientGlobalPointer(_SpanScorer):
    """One query and key of each token, and two numbers of each token for each type of entity.

    s_c(i, j) = R_i q_i . R_j k_j / sqrt(D) + u_c . [q_i; k_i] + v_c . [q_j; k_j], with a bias in
    each. The product finds entities, and the other terms find their types. A new type costs 4 D
    weights, and 2 H D in `GlobalPointer`.

    The authors' code halves the last two terms, which is the same up to the size of u and v.

    Args: as for `GlobalPointer`.

    Source: Su et al., 2022 (https://arxiv.org/abs/2208.03054), section 3.3;
    bojone/bert4keras, layers.py, `EfficientGlobalPointer`.
    """

    def build(self, sequence_shape: Shape, padding_mask_shape: Shape | None = None) -> None:
        self.pair_dense = self._dense(2 * self.head_dim, "pair_dense")
        self.pair_dense.build(sequence_shape)
        self.type_dense = self._dense(2 * self.num_classes, "type_dense")
        self.type_dense.build((None, None, 2 * self.head_dim))

    def call(self, sequence: Tensor, padding_mask: Tensor) -> Tensor:
        """Scores the spans. Args, Returns: as for `GlobalPointer.call`."""
        vectors = self.pair_dense(sequence)
        queries, keys = self._place(vectors[..., : self.head_dim], vectors[..., self.head_dim :])
        pairs = ops.einsum("bmd,bnd->bmn", queries, keys) / self.head_dim**0.5
        types = ops.cast(ops.transpose(self.type_dense(vectors), (0, 2, 1)), "float32")
        first, last = types[:, : self.num_classes], types[:, self.num_classes :]
        scores = pairs[:, None] + first[:, :, :, None] + last[:, :, None, :]
        return self._leave_out(scores, padding_mask)
