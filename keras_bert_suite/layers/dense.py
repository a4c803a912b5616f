"""A dense layer with as few passes over memory as the backend allows."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.activations import gelu_erf, gelu_tanh
from keras_bert_suite.layers.torch_products import linear

#: PyTorch's names for the two functions.
GELU_APPROXIMATIONS = {gelu_erf: "none", gelu_tanh: "tanh"}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Dense(keras.layers.Dense):
    """Keras' dense layer, in which the product adds the bias itself.

    Keras computes the product and then the sum, which reads and writes the output once more. The
    compiler of JAX joins the two. For PyTorch and TensorFlow this layer asks for it: TensorFlow
    joins a product of matrices, a bias, and an activation that nothing else reads, such as
    `gelu_erf` outside training. Weights, LoRA and quantization are those of `keras.layers.Dense`.
    """

    def quantize(self, mode: Any = None, type_check: bool = True, config: Any = None) -> None:
        """As Keras' layer, which by default refuses its subclasses."""
        super().quantize(mode, type_check=False, config=config)

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """Computes `activation(inputs @ kernel + bias)`.

        Args:
            inputs: float (..., I).
            training: bool, not used.

        Returns:
            float (..., units).
        """
        backend = keras.config.backend()
        if self.bias is None or backend not in ("tensorflow", "torch"):
            return super().call(inputs, training=training)
        activation = self.activation or keras.activations.linear
        kernel, bias = ops.convert_to_tensor(self.kernel), ops.convert_to_tensor(self.bias)
        if backend == "torch":
            if activation in GELU_APPROXIMATIONS:
                return linear(inputs, kernel, bias, gelu=GELU_APPROXIMATIONS[activation])
            return activation(linear(inputs, kernel, bias))
        import tensorflow as tf

        shape = ops.shape(inputs)
        rows = tf.reshape(inputs, (-1, inputs.shape[-1]))
        rows = activation(tf.nn.bias_add(tf.matmul(rows, kernel), bias))
        return tf.reshape(rows, (*shape[:-1], self.units))
