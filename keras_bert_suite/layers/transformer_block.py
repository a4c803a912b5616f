"""A layer of an encoder or a decoder."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.activations import gelu_tanh
from keras_bert_suite.layers.adapters.adaptable_block import (
    FEEDFORWARD,
    SELF_ATTENTION,
    AdaptableBlock,
)
from keras_bert_suite.layers.attention.bucketed_layout import BucketedLayout
from keras_bert_suite.layers.attention.self_attention import SelfAttention
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.gates import apply_gate
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norm_condition import NormCondition
from keras_bert_suite.layers.norms import call_norm, make_norm
from keras_bert_suite.layers.recompute import recompute


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TransformerBlock(AdaptableBlock, ShapeKeepingLayer):
    """Self-attention and a feed-forward network, each with residual and norm after it.

    As a layer of a decoder it attends to the output of an encoder between the two.

    Args:
        num_heads: int.
        intermediate_dim: int, inner width of the feed-forward network.
        activation: callable, or Keras' name of one. Defaults to `gelu_tanh`, Google's.
        dropout: float, dropout rate of both sublayers' outputs.
        attention_dropout: float, dropout rate of the attention probabilities.
        layer_norm_epsilon: float.
        initializer_range: float, standard deviation of the truncated normal.
        remat: bool, whether a training step computes the block a second time for its gradient,
            instead of keeping its activations; see `recompute`.
        has_cross_attention: bool, whether the block has weights for attention to an encoder.
        head_dim: int, the width of a head; see `SelfAttention`.
        norm_condition: `NormCondition`, of the vectors on which the norms depend; None for none.

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805). The cross-attention is from
        Vaswani et al., 2017 (https://arxiv.org/abs/1706.03762), section 3.2.3.
    """

    #: Whether the layers of the feed-forward network have biases.
    use_bias: bool = True
    #: The type of the norms, a key of `NORM_TYPES`.
    norm_type: str = "layer_norm"
    #: Whether a norm comes before each sublayer, as subclasses have it, and not after it.
    pre_norm: bool = False

    changeable = frozenset({"remat"})

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        activation: Activation = gelu_tanh,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        remat: bool = False,
        has_cross_attention: bool = False,
        head_dim: int | None = None,
        norm_condition: NormCondition | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.remat = remat
        self.has_cross_attention = has_cross_attention
        self.head_dim = head_dim
        self.norm_condition = norm_condition

        heads = {
            "num_heads": num_heads,
            "dropout": attention_dropout,
            "initializer_range": initializer_range,
            "dtype": self.dtype_policy,
        }
        if head_dim is not None:
            heads["head_dim"] = head_dim
        self.self_attention = self.make_attention(**heads, name="self_attention")
        norm = partial(
            make_norm,
            self,
            epsilon=layer_norm_epsilon,
            norm_type=self.norm_type,
            condition=norm_condition,
        )
        self.self_attention_norm = norm("self_attention_norm")
        if has_cross_attention:
            # The tokens of another row have no distance.
            self.cross_attention: Any = SelfAttention(**heads, name="cross_attention")
            self.cross_attention_norm = norm("cross_attention_norm")
        self.feedforward_norm = norm("feedforward_norm")
        self.sublayer_dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        #: Dropout within the feed-forward network, of subclasses that have it.
        self.inner_dropout: Dropout | None = None

    def make_attention(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the attention layer from the arguments of `SelfAttention`."""
        return SelfAttention(**arguments)

    def build(self, hidden_shape: Shape) -> None:
        self.self_attention.build(hidden_shape)
        self.self_attention_norm.build(hidden_shape)
        if self.has_cross_attention:
            self.cross_attention.build(hidden_shape)
            self.cross_attention_norm.build(hidden_shape)
        dense = partial(make_dense, self, stddev=self.initializer_range, use_bias=self.use_bias)
        self.intermediate = dense(
            self.intermediate_dim, "intermediate", hidden_shape, activation=self.activation
        )
        inner_shape = (*hidden_shape[:-1], self.intermediate_dim)
        self.feedforward_output = dense(hidden_shape[-1], "feedforward_output", inner_shape)
        self.feedforward_norm.build(hidden_shape)

    def call(
        self,
        hidden: Tensor,
        attention_mask: Tensor | BucketedLayout | None = None,
        positions: Tensor | None = None,
        training: bool | None = None,
        source: Tensor | None = None,
        source_positions: Tensor | None = None,
        score_bias: Tensor | None = None,
        encoder_sequence: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        condition: Tensor | None = None,
    ) -> Tensor:
        """Encodes each position from the positions that its mask allows.

        Args:
            hidden: float (B, L, H).
            attention_mask: see `SelfAttention.call`.
            positions: int32 (1, L) or (B, L), the positions of the tokens, for attention layers
                that have them; see `SelfAttention.place_queries`. None for other attention layers.
            training: bool, whether dropout is active.
            source, source_positions, score_bias: of the self-attention; see `SelfAttention.call`.
            encoder_sequence: float (B, S, H), the output of an encoder to which the block attends.
                None leaves the cross-attention out. Then the block is one of an encoder.
            encoder_padding_mask: int (B, S), 1 on tokens of the encoder; None for all.
            condition: float (B, C), on which the norms depend, with `norm_condition`.

        Returns:
            float (B, L, H).
        """
        tensors = {
            "source": source,
            "score_bias": score_bias,
            "encoder_sequence": encoder_sequence,
            "condition": condition,
        }
        tensors = {name: x for name, x in tensors.items() if x is not None}
        others = {
            "attention_mask": attention_mask,
            "positions": positions,
            "source_positions": source_positions,
            "encoder_padding_mask": encoder_padding_mask,
        }
        others = {name: x for name, x in others.items() if x is not None}
        return self.run(hidden, tensors, others, training)

    def run(
        self,
        hidden: Tensor,
        tensors: dict[str, Tensor],
        others: dict[str, Any],
        training: bool | None = None,
    ) -> Tensor:
        """Computes the block, with `remat` in such a way that it is computed again.

        Args:
            hidden: float (B, L, H).
            tensors: dict of the arguments of `call` that have a gradient.
            others: dict of its other arguments.
            training: bool, whether dropout is active.

        Returns:
            float (B, L, H).
        """
        if not (training and self.remat):
            return self._encode(hidden, training=training, **tensors, **others)

        # Masks and positions have no gradient, so they are no inputs of the recomputation.
        def encode(hidden: Tensor, *values: Tensor) -> Tensor:
            given = dict(zip(tensors, values, strict=True))
            return self._encode(hidden, training=True, **given, **others)

        return recompute(self, encode, hidden, *tensors.values())

    def _encode(
        self,
        hidden: Tensor,
        training: bool | None,
        encoder_sequence: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        condition: Tensor | None = None,
        **attention: Any,
    ) -> Tensor:
        """The block itself, with the arguments `attention` of its attention layer."""
        prepared = self.prepare(hidden, condition)
        attended = call_inner(self.self_attention, prepared, **attention, training=training)
        if encoder_sequence is None:
            return self.finish(hidden, attended, training=training, condition=condition)
        cross = partial(
            call_inner,
            self.cross_attention,
            attention_mask=encoder_padding_mask,
            source=encoder_sequence,
            training=training,
        )
        return self.finish(hidden, attended, cross, training=training, condition=condition)

    def prepare(self, hidden: Tensor, condition: Tensor | None = None) -> Tensor:
        """The input (B, L, H) of the self-attention: the hidden states, with `pre_norm` normed."""
        return call_norm(self.self_attention_norm, hidden, condition) if self.pre_norm else hidden

    def finish(
        self,
        hidden: Tensor,
        attended: Tensor,
        cross: Callable[[Tensor], Tensor] | None = None,
        training: bool | None = None,
        condition: Tensor | None = None,
    ) -> Tensor:
        """Computes the rest of the block: residuals, norms and feed-forward network.

        Args:
            hidden: float (B, L, H), the input of the block.
            attended: float (B, L, H), the output of its self-attention.
            cross: function from hidden states (B, L, H) to the output of the cross-attention, or
                None without cross-attention.
            training: bool, whether dropout is active.
            condition: as for `call`.

        Returns:
            float (B, L, H).
        """
        drop = partial(call_inner, self.sublayer_dropout, training=training)
        norm = self.self_attention_norm
        hidden = self.close(SELF_ATTENTION, hidden, drop(attended), norm, training, condition)
        if cross is not None:
            hidden = call_norm(self.cross_attention_norm, hidden + drop(cross(hidden)), condition)
        projected = drop(self.feed_forward(hidden, training))
        return self.close(
            FEEDFORWARD, hidden, projected, self.feedforward_norm, training, condition
        )

    def feed_forward(self, hidden: Tensor, training: bool | None = None) -> Tensor:
        """The feed-forward network: float (B, L, H) -> (B, L, H)."""
        inner = call_inner(self.intermediate, hidden, training=training)
        inner = apply_gate(self, inner, axis=-1)
        if self.inner_dropout is not None:
            inner = call_inner(self.inner_dropout, inner, training=training)
        return call_inner(self.feedforward_output, inner, training=training)
