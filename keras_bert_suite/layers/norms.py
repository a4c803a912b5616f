"""The norms of the layers, and the choice between them."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.eager_pass import read_weight

#: `is_exact`, within `exact_second_derivatives`.
_scope = threading.local()


@contextlib.contextmanager
def exact_second_derivatives() -> Iterator[None]:
    """Within it, norms can be differentiated twice under each backend.

    `tf.nn.moments` stops the gradient of the mean in the variance, which changes second derivatives
    alone. Outside, TensorFlow has its own operations, of which it makes one kernel on a CPU.
    """
    outer = getattr(_scope, "is_exact", False)
    _scope.is_exact = True
    try:
        yield
    finally:
        _scope.is_exact = outer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RootMeanSquareNorm(ShapeKeepingLayer):
    """Divides each vector by the root of the mean of its squares. It has no weights.

    `epsilon` is added to the mean of the squares.

    Source: Zhang and Sennrich, 2019 (https://arxiv.org/abs/1910.07467), without their gain, as in
    ZhuiyiTechnology/roformer-v2.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def call(self, x: Tensor) -> Tensor:
        """float (..., H) -> float (..., H) in the same dtype. The norm is computed in float32."""
        wide = ops.cast(x, "float32")
        squares = ops.mean(ops.square(wide), axis=-1, keepdims=True)
        return ops.cast(wide * ops.rsqrt(squares + self.epsilon), x.dtype)


class LayerNormalization(keras.layers.LayerNormalization):
    """Keras' norm over the last axis, in fewer operations under PyTorch and JAX.

    For `make_norm`: other axes and scalings are not for this class. It has the name of Keras'
    class, by which files know the norms of a list.
    """

    is_rounded_together = True

    def build(self, input_shape: Shape) -> None:
        super().build(input_shape)
        self.axis = [-1]  # Keras 3.16 counts it from the first axis, so other ranks would fail.

    def call(self, inputs: Tensor) -> Tensor:
        """float (..., H) -> float (..., H) in the compute dtype. It is computed in float32."""
        backend = keras.config.backend()
        if backend == "tensorflow":
            is_exact = getattr(_scope, "is_exact", False)
            return self._compute(inputs) if is_exact else super().call(inputs)
        if inputs.dtype.itemsize > 4:
            return super().call(inputs)
        return self._call_torch(inputs) if backend == "torch" else self._compute(inputs)

    def _call_torch(self, inputs: Tensor) -> Tensor:
        """By its kernel alone, which sums in float32. Keras asks seven times for a dtype."""
        import torch

        if inputs.device.type != "cpu":  # There the kernel wants one dtype.
            weights = (read_weight(w, self.compute_dtype) for w in (self.gamma, self.beta))
            gamma, beta = (
                None if weight is None else weight.to(inputs.dtype) for weight in weights
            )
        else:
            gamma, beta = read_weight(self.gamma), read_weight(self.beta)
        outputs = torch.nn.functional.layer_norm(
            inputs, inputs.shape[-1:], gamma, beta, self.epsilon
        )
        return outputs.to(getattr(torch, self.compute_dtype))

    def _compute(self, inputs: Tensor) -> Tensor:
        """By the formula of the paper.

        Keras multiplies gamma by 1 / deviation first. XLA makes more kernels of this, which take
        longer to compile and to run.
        """
        x = ops.cast(inputs, "float32")
        x = x - ops.mean(x, axis=-1, keepdims=True)
        x = x * ops.rsqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + self.epsilon)
        if self.gamma is not None:
            x = x * ops.cast(self.gamma, "float32")
        if self.beta is not None:
            x = x + ops.cast(self.beta, "float32")
        return ops.cast(x, self.compute_dtype)


#: The class of each type of norm.
NORM_TYPES: dict[str, type[keras.layers.Layer]] = {
    "layer_norm": LayerNormalization,
    "rms_norm": RootMeanSquareNorm,
}


def make_norm(
    owner: keras.layers.Layer,
    name: str,
    epsilon: float,
    norm_type: str = "layer_norm",
    center: bool = True,
) -> keras.layers.Layer:
    """Makes a norm of another layer, in the dtype of that layer. `norm_type` is in `NORM_TYPES`.

    `center` says whether a norm with weights has a bias.
    """
    check_choice("norm_type", norm_type, NORM_TYPES)
    arguments = {} if center else {"center": False}
    norm = NORM_TYPES[norm_type]
    return norm(epsilon=epsilon, dtype=owner.dtype_policy, name=name, **arguments)
