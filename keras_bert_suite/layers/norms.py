"""The norms of the layers, and the choice between them."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.layers.configured_layer import ShapeKeepingLayer
from keras_bert_suite.layers.eager_pass import read_weight
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norm_condition import NormCondition

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

    def bind(self) -> Callable[[Tensor], Tensor] | None:
        """`call` under PyTorch on a CPU in float32, with the weights as they are now; else None."""
        import torch

        gamma, beta = read_weight(self.gamma), read_weight(self.beta)
        weights = [weight for weight in (gamma, beta) if weight is not None]
        is_plain = type(self).call is LayerNormalization.call and self.compute_dtype == "float32"
        if not is_plain or any(weight.device.type != "cpu" for weight in weights):
            return None
        normalize, epsilon = torch.nn.functional.layer_norm, self.epsilon
        return lambda inputs: normalize(inputs, inputs.shape[-1:], gamma, beta, epsilon)

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
        x = standardize(ops.cast(inputs, "float32"), self.epsilon)
        if self.gamma is not None:
            x = x * ops.cast(self.gamma, "float32")
        if self.beta is not None:
            x = x + ops.cast(self.beta, "float32")
        return ops.cast(x, self.compute_dtype)


class ConditionalNorm(LayerNormalization):
    """A norm whose scale and offset have a part that depends on a vector of each row.

    With `hidden_dim` of the condition there is a matrix `hidden_kernel` (C, D), else D is C. The
    matrices `scale_kernel` and `offset_kernel`, (D, H), begin as 0.
    """

    def __init__(self, condition: NormCondition, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.condition = condition
        self.activate = condition.function

    def build(self, input_shape: Shape, *_: Shape) -> None:
        super().build(input_shape)
        width, hidden_dim = self.condition.dim, self.condition.hidden_dim
        self.hidden_kernel = None
        if hidden_dim is not None:
            self.hidden_kernel = self.add_weight(shape=(width, hidden_dim), name="hidden_kernel")
            width = hidden_dim
        shape = (width, input_shape[-1])
        self.scale_kernel = self.add_weight(shape=shape, initializer="zeros", name="scale_kernel")
        self.offset_kernel = self.add_weight(shape=shape, initializer="zeros", name="offset_kernel")

    def call(  # type: ignore[override]
        self, inputs: Tensor, condition: Tensor
    ) -> Tensor:
        """float (B, L, H) and (B, C) -> float (B, L, H). It is computed in float32 at least."""
        wide = "float64" if self.compute_dtype == "float64" else "float32"
        given = ops.cast(condition, wide)
        if self.hidden_kernel is not None:
            given = self.activate(ops.matmul(given, ops.cast(self.hidden_kernel, wide)))
        scale = ops.matmul(given, ops.cast(self.scale_kernel, wide)) + ops.cast(self.gamma, wide)
        offset = ops.matmul(given, ops.cast(self.offset_kernel, wide)) + ops.cast(self.beta, wide)
        x = standardize(ops.cast(inputs, wide), self.epsilon)
        return ops.cast(x * scale[:, None] + offset[:, None], self.compute_dtype)

    def compute_output_shape(self, input_shape: Shape, *_: Shape) -> Shape:
        return input_shape


def standardize(x: Tensor, epsilon: float) -> Tensor:
    """Vectors (..., H) less their mean, over their standard deviation."""
    if keras.config.backend() == "torch":
        import torch

        return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=epsilon)
    x = x - ops.mean(x, axis=-1, keepdims=True)
    return x * ops.rsqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + epsilon)


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
    condition: NormCondition | None = None,
) -> keras.layers.Layer:
    """Makes a norm of another layer, in the dtype of that layer. `norm_type` is in `NORM_TYPES`.

    `center` says whether a norm with weights has a bias. With a `condition` the scale and the bias
    depend on it, so that other norms are a ValueError.
    """
    check_choice("norm_type", norm_type, NORM_TYPES)
    common = {"epsilon": epsilon, "dtype": owner.dtype_policy, "name": name}
    if condition is None:
        return NORM_TYPES[norm_type](**common, **({} if center else {"center": False}))
    if norm_type != "layer_norm" or not center:
        raise ValueError(
            f"{condition} is for norms with a scale and an offset, got norm_type={norm_type!r} and "
            f"center={center}. Use an encoder with such norms, or leave norm_condition out."
        )
    return ConditionalNorm(condition, **common)


def call_norm(norm: keras.layers.Layer, x: Tensor, condition: Tensor | None = None) -> Tensor:
    """The output of a norm of `make_norm`. `condition`, float (B, C), is None if it has none."""
    return call_inner(norm, x) if condition is None else call_inner(norm, x, condition=condition)
