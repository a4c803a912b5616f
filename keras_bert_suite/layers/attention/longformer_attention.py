"""The attention of Longformer: within a window, and of global tokens."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.attention_kernels import attention_probabilities
from keras_bert_suite.layers.attention.global_tokens import LongRows
from keras_bert_suite.layers.attention.local_attention import (
    SharedKeys,
    attend_locally,
    find_visible,
)
from keras_bert_suite.layers.attention.rotary_positions import count_positions
from keras_bert_suite.layers.attention.self_attention import SelfAttention, expand_attention_mask
from keras_bert_suite.layers.transformer_block import TransformerBlock

#: The number of a sequence that no token has. It hides global tokens from the window.
_SHARED = -3


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LongformerAttention(SelfAttention):
    """Self-attention of each token within a window, and of global tokens with all tokens.

    A token attends to the tokens up to `reach` positions away, and to the global tokens of its row,
    in one softmax. A global token attends to all tokens of its row, with other projections for
    queries, keys and values. The largest array of scores has `3 reach + G` keys for each token, and
    L for each of the G global tokens. So memory is linear in L.

    Packed rows are put back to the rows of the batch for the attention alone. All other layers, and
    the projections here, work on the packed rows.

    Args:
        num_heads: int.
        reach: int, how far a token looks to each side.
        **kwargs: other arguments of `SelfAttention`.

    Source: Beltagy et al., 2020 (https://arxiv.org/abs/2004.05150), section 3.1. The windows are
    not dilated, as in the released models.
    """

    takes_source = False
    takes_head_dim = False

    def __init__(self, num_heads: int, reach: int = 256, **kwargs: Any) -> None:
        super().__init__(num_heads, **kwargs)
        self.reach = reach

    def build(self, hidden_shape: Shape) -> None:
        super().build(hidden_shape)
        self.global_query = self._build_projection("global_query", hidden_shape)
        self.global_key = self._build_projection("global_key", hidden_shape)
        self.global_value = self._build_projection("global_value", hidden_shape)

    def call(  # type: ignore[override]  # No mask replaces these rows.
        self, hidden: Tensor, attention_mask: LongRows, training: bool | None = None
    ) -> Tensor:
        """Lets each token attend to its window and to the global tokens of `LongRows`.

        The hidden states are (B, L, H), or (R, W, H) of packed rows.
        """
        rows = attention_mask
        projected = [rows.unpack(project(hidden)) for project in (self.query, self.key, self.value)]
        query, key, value = map(self._split_heads, projected)
        shared = None
        if rows.num_slots:
            shared_key, shared_value = (self._split_heads(rows.gather(x)) for x in projected[1:])
            # The window does not have the global tokens a second time.
            sequences = ops.where(rows.is_global, _SHARED, rows.padding_mask)
            shared = SharedKeys(shared_key, shared_value, rows.is_taken, sequences)
        context = attend_locally(
            *(query, key, value),
            rows.padding_mask,
            count_positions(rows.padding_mask),
            self.reach,
            self.choose_kernel(query, training),
            shared,
        )
        context = self._join_heads(context)
        if rows.num_slots:
            context = rows.replace(context, self._attend_globally(hidden, rows, training))
        return self.output_projection(rows.pack(context))

    def _attend_globally(self, hidden: Tensor, rows: LongRows, training: bool | None) -> Tensor:
        """The attention output of the global tokens, float (B, G, H)."""
        query = self._split_heads(self.global_query(rows.gather(rows.unpack(hidden))))
        key, value = (
            self._split_heads(rows.unpack(project(hidden)))
            for project in (self.global_key, self.global_value)
        )
        mask = expand_attention_mask(rows.padding_mask)
        return self._join_heads(self.choose_kernel(query, training)(query, key, value, mask))

    def compute_probabilities(  # type: ignore[override]
        self, hidden: Tensor, attention_mask: LongRows
    ) -> Tensor:
        """The probabilities of each pair of tokens, float32 (B, heads, L, L), without dropout.

        They sum to 1 over the last axis. They are for inspection, not for training.
        """
        rows, is_global = attention_mask, attention_mask.is_global
        query, key, _ = self.project(hidden)
        tokens = (rows.padding_mask, count_positions(rows.padding_mask))
        in_window = find_visible(*tokens, *tokens, self.reach)
        mask = ops.logical_or(in_window, is_global[:, None, :])[:, None]
        probabilities = attention_probabilities(query, key, mask)
        query, key = (self._split_heads(p(hidden)) for p in (self.global_query, self.global_key))
        of_all = attention_probabilities(query, key, expand_attention_mask(rows.padding_mask))
        return ops.where(is_global[:, None, :, None], of_all, probabilities)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LongformerBlock(TransformerBlock):
    """`TransformerBlock` with `LongformerAttention`.

    Args:
        num_heads, intermediate_dim: as for `TransformerBlock`.
        reach: as for `LongformerAttention`.
        **kwargs: other arguments of `TransformerBlock`.
    """

    def __init__(
        self, num_heads: int, intermediate_dim: int, reach: int = 256, **kwargs: Any
    ) -> None:
        self.reach = reach
        super().__init__(num_heads, intermediate_dim, **kwargs)

    def make_attention(self, **arguments: Any) -> LongformerAttention:
        """Makes the attention layer from the arguments of `SelfAttention`."""
        return LongformerAttention(reach=self.reach, **arguments)
