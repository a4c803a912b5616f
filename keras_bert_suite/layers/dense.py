"""A dense layer with as few passes over memory as the backend allows."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Dense(keras.layers.Dense):
    """Keras' dense layer, whose product adds the bias itself under PyTorch.

    Keras computes the product and then the sum, which reads and writes the output once more. The
    compilers of JAX and TensorFlow join the two. Weights, LoRA and quantization are those of
    `keras.layers.Dense`.
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
        if keras.config.backend() != "torch" or self.bias is None:
            return super().call(inputs, training=training)
        import torch

        kernel, bias = ops.convert_to_tensor(self.kernel), ops.convert_to_tensor(self.bias)
        # `linear` takes the kernel with its axes swapped, which is a view.
        x = torch.nn.functional.linear(inputs, kernel.T, bias)
        return x if self.activation is None else self.activation(x)
