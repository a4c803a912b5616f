"""The layers between the hidden states of an encoder and the output layer of a head."""

from typing import Any

import keras

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.activations import gelu_erf
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.dense import make_dense
from keras_bert_suite.layers.norms import make_norm


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PredictionHead(ShapeKeepingLayer):
    """A dense layer, an activation and a norm, for one vector or for each token.

    Args:
        activation: callable, or Keras' name of one.
        use_bias: bool, whether the dense layer has a bias.
        norm_bias: bool, whether the norm has a bias.
        layer_norm_epsilon: float.
        initializer_range: float, standard deviation of the truncated normal.

    Source: Warner et al., 2024 (https://arxiv.org/abs/2412.13663), and their code.
    """

    def __init__(
        self,
        activation: Activation = gelu_erf,
        use_bias: bool = False,
        norm_bias: bool = False,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.norm_bias = norm_bias
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.layer_norm = make_norm(self, "layer_norm", layer_norm_epsilon, center=norm_bias)

    def build(self, hidden_shape: Shape) -> None:
        self.dense = make_dense(
            self,
            hidden_shape[-1],
            "dense",
            hidden_shape,
            self.initializer_range,
            activation=self.activation,
            use_bias=self.use_bias,
        )
        self.layer_norm.build(hidden_shape)

    def call(self, hidden: Tensor) -> Tensor:
        """Transforms vectors: float (..., H) -> (..., H)."""
        return self.layer_norm(self.dense(hidden))
