"""The attention of ModernBERT: rotary positions, over whole rows or within a window."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.layers.attention.attention_kernels import attention_probabilities
from keras_bert_suite.layers.attention.local_attention import attend_locally, find_visible
from keras_bert_suite.layers.attention.rotary_positions import count_positions, rotate_positions
from keras_bert_suite.layers.attention.self_attention import SelfAttention, expand_attention_mask
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.inner_call import call_inner


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertAttention(SelfAttention):
    """Multi-head self-attention with rotary positions, of all tokens or of those within a window.

    One matrix makes queries, keys and values. Without a window the kernels are those of
    `SelfAttention`. With a window, long rows are computed block by block, by those kernels that
    take a mask, see `attend_locally`.

    Args:
        num_heads: int, must divide the width H of the input into heads of even width.
        reach: int, how far a token looks to each side; None for all tokens of its row.
        rotary_base: float, see `rotate_positions`.
        dropout: float, dropout rate of the attention probabilities.
        use_bias: bool, whether the projections have biases.
        initializer_range: float, standard deviation of the truncated normal for queries, keys and
            values.
        output_range: float, the same for the output projection.

    Source: Warner et al., 2024 (https://arxiv.org/abs/2412.13663), section 2.1.
    """

    has_even_heads = True
    takes_source = False

    def __init__(
        self,
        num_heads: int,
        reach: int | None = None,
        rotary_base: float = 10000.0,
        dropout: float = 0.0,
        use_bias: bool = False,
        initializer_range: float = 0.02,
        output_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, dropout, initializer_range, **kwargs)
        self.reach = reach
        self.rotary_base = rotary_base
        self.use_bias = use_bias
        self.output_range = output_range

    def build(self, hidden_shape: Shape) -> None:
        hidden_dim = hidden_shape[-1]
        self.check_heads(hidden_dim)
        dense = partial(make_dense, self, input_shape=hidden_shape, use_bias=self.use_bias)
        self.query_key_value = dense(
            3 * hidden_dim, "query_key_value", stddev=self.initializer_range
        )
        self.output_projection = dense(hidden_dim, "output_projection", stddev=self.output_range)

    def call(  # type: ignore[override]  # It has positions of its own, and they are needed.
        self,
        hidden: Tensor,
        attention_mask: Tensor,
        positions: Tensor,
        training: bool | None = None,
    ) -> Tensor:
        """Lets each token attend to the tokens that its mask, and the window, allow.

        Args:
            hidden: float (B, L, H).
            attention_mask: without a window as for `SelfAttention.call`. With a window int (B, L),
                the number of the sequence of each token, such as a padding mask; see
                `attend_locally`.
            positions: int32 (1, L) or (B, L).
            training: bool, whether dropout is active.

        Returns:
            float (B, L, H).
        """
        query, key, value = self._project(hidden, positions)
        attend = self.choose_kernel(query, training)
        if self.reach is None:
            context = attend(query, key, value, expand_attention_mask(attention_mask))
        else:
            context = attend_locally(
                query, key, value, attention_mask, positions, self.reach, attend
            )
        return self.merge(context)

    def _project(self, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, L, H) -> turned queries, turned keys and values, each (B, heads, L, D)."""
        heads, width = self.num_heads, hidden.shape[-1] // self.num_heads
        x = call_inner(self.query_key_value, hidden)
        x = ops.reshape(x, (-1, ops.shape(hidden)[1], 3, heads, width))
        turned = ops.cast(rotate_positions(x[:, :, :2], self.rotary_base, positions), x.dtype)
        query, key, value = turned[:, :, 0], turned[:, :, 1], x[:, :, 2]
        return ops.swapaxes(query, 1, 2), ops.swapaxes(key, 1, 2), ops.swapaxes(value, 1, 2)

    def compute_probabilities(  # type: ignore[override]
        self, hidden: Tensor, padding_mask: Tensor
    ) -> Tensor:
        """The attention probabilities of each pair of tokens, without dropout.

        Args:
            hidden: float (B, L, H).
            padding_mask: int (B, L), 1 on tokens and 0 on padding.

        Returns:
            float32 (B, heads, L, L). It sums to 1 over the last axis.
        """
        positions = count_positions(hidden)
        query, key, _ = self._project(hidden, positions)
        mask = expand_attention_mask(padding_mask)
        if self.reach is not None:
            tokens = (padding_mask, positions)
            mask = find_visible(*tokens, *tokens, self.reach)[:, None]
        return attention_probabilities(query, key, mask)
