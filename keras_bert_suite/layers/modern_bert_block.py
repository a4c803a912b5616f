"""A layer of ModernBERT."""

from functools import partial
from typing import Any

import keras

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.activations import gelu_erf
from keras_bert_suite.layers.attention.modern_bert_attention import ModernBertAttention
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norms import make_norm
from keras_bert_suite.layers.recompute import recompute


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertBlock(ShapeKeepingLayer):
    """Self-attention and a gated feed-forward network, each with a norm before it.

    The feed-forward network is `W (activation(U x) * V x)`; one matrix holds U and V.

    Args:
        num_heads: int.
        intermediate_dim: int, inner width of the feed-forward network.
        activation: callable, or Keras' name of one.
        reach: int, how far a token looks to each side; None for all tokens of its row.
        rotary_base: float, see `rotate_positions`.
        has_attention_norm: bool, whether there is a norm before the attention.
        attention_dropout: float, dropout rate of the attention probabilities, and of what the
            attention adds to the hidden states.
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
        """Encodes each token from the tokens that it may attend to.

        Args:
            hidden: float (B, L, H).
            attention_mask, positions: see `ModernBertAttention.call`.
            training: bool, whether dropout is active.

        Returns:
            float (B, L, H).
        """
        arguments = {"attention_mask": attention_mask, "positions": positions}
        encode = partial(self._encode, attention=arguments, training=training)
        # What the attention takes has no gradient, so it is no input of what is computed twice.
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
        hidden = hidden + run(self.output_dropout, attended)
        both = run(self.gated_intermediate, call_inner(self.feedforward_norm, hidden))
        inner, gate = both[..., : self.intermediate_dim], both[..., self.intermediate_dim :]
        inner = run(self.inner_dropout, self.activation(inner) * gate)
        return hidden + run(self.feedforward_output, inner)

    def _normalize(self, hidden: Tensor) -> Tensor:
        norm = self.self_attention_norm
        return hidden if norm is None else call_inner(norm, hidden)

    def compute_probabilities(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """See `ModernBertAttention.compute_probabilities`; `hidden` is the input of the block."""
        return self.self_attention.compute_probabilities(self._normalize(hidden), padding_mask)
