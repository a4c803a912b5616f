"""A layer of the encoder or the decoder of BART and mBART."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from keras_bert_suite.annotations import Activation, Tensor
from keras_bert_suite.layers.activations import gelu_erf
from keras_bert_suite.layers.adapters.adaptable_block import FEEDFORWARD, SELF_ATTENTION
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norms import call_norm
from keras_bert_suite.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BartBlock(TransformerBlock):
    """A `TransformerBlock` whose norms may come before the sublayers.

    Args:
        num_heads, intermediate_dim: as for `TransformerBlock`.
        activation, attention_dropout, layer_norm_epsilon: the same, with BART's values.
        activation_dropout: float, dropout rate within the feed-forward network.
        pre_norm: bool, whether a norm comes before each sublayer, as in mBART, instead of after
            its residual.
        **kwargs: other arguments of `TransformerBlock`.

    Source: Lewis et al., 2019 (https://arxiv.org/abs/1910.13461), Liu et al., 2020
    (https://arxiv.org/abs/2001.08210), and `modeling_bart.py` and `modeling_mbart.py` of
    transformers.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        activation: Activation = gelu_erf,
        attention_dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-5,
        activation_dropout: float = 0.0,
        pre_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_heads,
            intermediate_dim,
            activation=activation,
            attention_dropout=attention_dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            **kwargs,
        )
        self.activation_dropout = activation_dropout
        self.pre_norm = pre_norm
        self.inner_dropout = Dropout(
            activation_dropout, dtype=self.dtype_policy, name="inner_dropout"
        )

    def finish(
        self,
        hidden: Tensor,
        attended: Tensor,
        cross: Callable[[Tensor], Tensor] | None = None,
        training: bool | None = None,
        condition: Tensor | None = None,
    ) -> Tensor:
        if not self.pre_norm:
            return super().finish(hidden, attended, cross, training, condition)
        drop = partial(call_inner, self.sublayer_dropout, training=training)
        hidden = self.close(SELF_ATTENTION, hidden, drop(attended), training=training)
        if cross is not None:
            normalised = call_norm(self.cross_attention_norm, hidden, condition)
            hidden = hidden + drop(cross(normalised))
        normalised = call_norm(self.feedforward_norm, hidden, condition)
        projected = drop(self.feed_forward(normalised, training))
        return self.close(FEEDFORWARD, hidden, projected, training=training)
