"""The head that guesses the tokens of a masked span from the tokens beside it."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.heads.masked_lm_head import VocabularyHead
from keras_bert_suite.layers.norms import make_norm


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SpanBoundaryHead(VocabularyHead):
    """Scores every token of the vocabulary for each masked token, from the boundary of its span.

    The input for a masked token is the hidden states of the two tokens beside its span, and an
    embedding of its position in the span. It goes through two dense layers, each with an activation
    and a norm. The output is multiplied with the token embedding, whose matrix the head shares, and
    a bias is added for each token.

    A span is a run of neighbouring `mask_positions`, also where it is made of two spans that touch,
    as in SpanBERT's code. Tokens after the first `max_span_length` of a span share the last
    embedding of a position; `find_masked_spans` says which tokens these are.

    Args:
        token_embedding: `keras.layers.ReversibleEmbedding` (V, E) of the backbone.
        activation: function.
        max_span_length: int, for how many positions in a span there is an embedding.
        place_dim: int, width of these embeddings.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the truncated normal.

    Source: Joshi et al., 2020 (https://arxiv.org/abs/1907.10529), section 3.2, and
    facebookresearch/SpanBERT, pair_bert.py. The two defaults are from SpanBERT's code.
    """

    def __init__(
        self,
        token_embedding: keras.layers.ReversibleEmbedding,
        activation: Activation,
        max_span_length: int = 15,
        place_dim: int = 200,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            token_embedding, activation, layer_norm_epsilon, initializer_range, **kwargs
        )
        self.max_span_length = max_span_length
        self.place_dim = place_dim
        self.place_embedding = keras.layers.Embedding(
            max_span_length,
            place_dim,
            embeddings_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
            dtype=self.dtype_policy,
            name="place_embedding",
        )
        self.norms = [make_norm(self, f"layer_norm_{i}", layer_norm_epsilon) for i in (1, 2)]

    def build(
        self, sequence_output_shape: Shape, mask_positions_shape: Shape | None = None
    ) -> None:
        hidden_dim = sequence_output_shape[-1]
        widths = (2 * hidden_dim + self.place_dim, hidden_dim, self.token_embedding.output_dim)
        self.place_embedding.build()
        dense = partial(make_dense, self, stddev=self.initializer_range, activation=self.activation)
        self.transforms = [
            dense(widths[i], f"transform_{i}", (None, None, widths[i - 1])) for i in (1, 2)
        ]
        for norm, width in zip(self.norms, widths[1:], strict=True):
            norm.build((None, None, width))
        self.add_bias_of_tokens()

    def call(self, sequence_output: Tensor, mask_positions: Tensor) -> Tensor:
        """Scores the vocabulary for masked tokens: float (B, L, H) -> logits (B, P, V).

        `mask_positions`, int32 (B, P), ascend in [0, L), and are then 0 in unused slots.
        """
        left, right, offsets = find_masked_spans(mask_positions)
        last = ops.shape(sequence_output)[1] - 1
        # An unused slot, at position 0, has no left neighbour.
        boundaries = [ops.clip(position, 0, last) for position in (left, right)]
        states = [
            ops.take_along_axis(sequence_output, position[:, :, None], axis=1)
            for position in boundaries
        ]
        x = self.place_embedding(ops.minimum(offsets, self.max_span_length - 1))
        x = ops.concatenate([*(ops.cast(state, x.dtype) for state in states), x], axis=-1)
        for transform, norm in zip(self.transforms, self.norms, strict=True):
            x = norm(transform(x))
        return self.score_vocabulary(x)


def find_masked_spans(mask_positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Finds the span of each masked token. A span is a run of neighbouring positions.

    >>> find_masked_spans([[2, 3, 7, 0]])
    ([[1, 1, 6, -1]], [[4, 4, 8, 1]], [[0, 1, 0, 0]])

    The positions, int (B, P), ascend; then come 0 in unused slots. The result is the position
    before the span, the position after it, and the position of the token in it, counted from 0. An
    unused slot is a span of one token.
    """
    positions = ops.cast(mask_positions, "int32")
    slots = ops.arange(positions.shape[1] or ops.shape(positions)[1], dtype="int32")
    # Position less slot is the same all over a span, and rises from span to span.
    numbers = positions - slots
    same = numbers[:, :, None] == numbers[:, None, :]
    is_before = slots[None, :] < slots[:, None]
    is_after = slots[None, :] > slots[:, None]
    before, after = (
        ops.sum(ops.cast(ops.logical_and(same, side), "int32"), axis=-1)
        for side in (is_before, is_after)
    )
    return positions - before - 1, positions + after + 1, before
