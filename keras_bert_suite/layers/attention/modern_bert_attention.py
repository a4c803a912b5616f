"""A layer of ModernBERT, and its attention: rotary positions, over whole rows or in a window."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.activations import gelu_erf
from keras_bert_suite.layers.adapters.adaptable_block import (
    FEEDFORWARD,
    SELF_ATTENTION,
    AdaptableBlock,
)
from keras_bert_suite.layers.attention.attention_kernels import attention_probabilities
from keras_bert_suite.layers.attention.local_attention import attend_locally, find_visible
from keras_bert_suite.layers.attention.rotary_positions import count_positions, rotate_positions
from keras_bert_suite.layers.attention.self_attention import SelfAttention, expand_attention_mask
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norms import make_norm
from keras_bert_suite.layers.recompute import recompute


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertAttention(SelfAttention):
    """Multi-head self-attention with rotary positions, over all tokens or within a window.

    One matrix makes queries, keys and values. Without a window it has the kernels of
    `SelfAttention`. With a window, long rows are computed block by block, by the kernels that take
    a mask, see `attend_locally`.

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
    takes_head_dim = False

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

    def call(  # type: ignore[override]  # Its positions are required.
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
        """The probabilities of each pair of tokens, float32 (B, heads, L, L), without dropout.

        They sum to 1 over the last axis. `padding_mask` is int (B, L).
        """
        positions = count_positions(hidden)
        query, key, _ = self._project(hidden, positions)
        mask = expand_attention_mask(padding_mask)
        if self.reach is not None:
            tokens = (padding_mask, positions)
            mask = find_visible(*tokens, *tokens, self.reach)[:, None]
        return attention_probabilities(query, key, mask)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertBlock(AdaptableBlock, ShapeKeepingLayer):
    """Self-attention and a gated feed-forward network, each with a norm before it.

    The feed-forward network is `W (activation(U x) * V x)`; one matrix holds U and V.

    Args:
        num_heads: int.
        intermediate_dim: int, inner width of the feed-forward network.
        activation: callable, or Keras' name of one.
        reach: int, how far a token looks to each side; None for all tokens of its row.
        rotary_base: float, see `rotate_positions`.
        has_attention_norm: bool, whether there is a norm before the attention.
        attention_dropout: float, dropout rate of the attention probabilities and of the output of
            the attention.
        mlp_dropout: float, dropout rate within the feed-forward network.
        attention_bias, mlp_bias, norm_bias: bool, whether these layers have biases.
        layer_norm_epsilon: float.
        initializer_range: float, standard deviation of the truncated normal for the layers that
            read hidden states.
        output_range: float, the same for the layers that write hidden states.
        remat: bool, whether a training step computes the block a second time for its gradient,
            instead of keeping its activations; see `recompute`.

    Source: Warner et al., 2024 (https://arxiv.org/abs/2412.13663), section 2.1.
    """

    changeable = frozenset({"remat"})

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        activation: Activation = gelu_erf,
        reach: int | None = None,
        rotary_base: float = 10000.0,
        has_attention_norm: bool = True,
        attention_dropout: float = 0.0,
        mlp_dropout: float = 0.0,
        attention_bias: bool = False,
        mlp_bias: bool = False,
        norm_bias: bool = False,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        output_range: float = 0.02,
        remat: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.reach = reach
        self.rotary_base = rotary_base
        self.has_attention_norm = has_attention_norm
        self.attention_dropout = attention_dropout
        self.mlp_dropout = mlp_dropout
        self.attention_bias = attention_bias
        self.mlp_bias = mlp_bias
        self.norm_bias = norm_bias
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.output_range = output_range
        self.remat = remat

        norm = partial(make_norm, self, epsilon=layer_norm_epsilon, center=norm_bias)
        self.self_attention_norm = norm("self_attention_norm") if has_attention_norm else None
        self.self_attention = ModernBertAttention(
            num_heads=num_heads,
            reach=reach,
            rotary_base=rotary_base,
            dropout=attention_dropout,
            use_bias=attention_bias,
            initializer_range=initializer_range,
            output_range=output_range,
            dtype=self.dtype_policy,
            name="self_attention",
        )
        self.feedforward_norm = norm("feedforward_norm")
        self.output_dropout = Dropout(
            attention_dropout, dtype=self.dtype_policy, name="output_dropout"
        )
        self.inner_dropout = Dropout(mlp_dropout, dtype=self.dtype_policy, name="inner_dropout")

    def build(self, hidden_shape: Shape) -> None:
        if self.self_attention_norm is not None:
            self.self_attention_norm.build(hidden_shape)
        self.self_attention.build(hidden_shape)
        self.feedforward_norm.build(hidden_shape)
        dense = partial(make_dense, self, use_bias=self.mlp_bias)
        self.gated_intermediate = dense(
            2 * self.intermediate_dim, "gated_intermediate", hidden_shape, self.initializer_range
        )
        inner_shape = (*hidden_shape[:-1], self.intermediate_dim)
        self.feedforward_output = dense(
            hidden_shape[-1], "feedforward_output", inner_shape, self.output_range
        )

    def call(
        self,
        hidden: Tensor,
        attention_mask: Tensor,
        positions: Tensor,
        training: bool | None = None,
    ) -> Tensor:
        """Encodes each token from the tokens that it may attend to: float (B, L, H) -> (B, L, H).

        The other arguments are as for `ModernBertAttention.call`.
        """
        arguments = {"attention_mask": attention_mask, "positions": positions}
        encode = partial(self._encode, attention=arguments, training=training)
        # The attention's arguments have no gradient, so they are no inputs of the recomputation.
        return recompute(self, encode, hidden) if training and self.remat else encode(hidden)

    def _encode(
        self,
        hidden: Tensor,
        attention: dict[str, Tensor | None],
        training: bool | None,
    ) -> Tensor:
        """The block itself, with the arguments `attention` of its attention layer."""
        run = partial(call_inner, training=training)
        attended = run(self.self_attention, self._normalize(hidden), **attention)
        attended = run(self.output_dropout, attended)
        hidden = self.close(SELF_ATTENTION, hidden, attended, training=training)
        both = run(self.gated_intermediate, call_inner(self.feedforward_norm, hidden))
        inner, gate = both[..., : self.intermediate_dim], both[..., self.intermediate_dim :]
        inner = run(self.inner_dropout, self.activation(inner) * gate)
        projected = run(self.feedforward_output, inner)
        return self.close(FEEDFORWARD, hidden, projected, training=training)

    def _normalize(self, hidden: Tensor) -> Tensor:
        norm = self.self_attention_norm
        return hidden if norm is None else call_inner(norm, hidden)

    def compute_probabilities(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """See `ModernBertAttention.compute_probabilities`; `hidden` is the input of the block."""
        return self.self_attention.compute_probabilities(self._normalize(hidden), padding_mask)
