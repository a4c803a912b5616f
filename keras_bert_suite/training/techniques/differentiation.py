"""The gradient of a function, on three backends."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_bert_suite.annotations import Tensor


def differentiate(
    function: Callable[[list[Tensor]], tuple[Tensor, Any]], values: Sequence[Tensor]
) -> tuple[list[Any], Any]:
    """The gradients of a function by its arguments, a list of float tensors.

    The function takes a list of tensors like `values`, and returns (float scalar, further results).
    The result is (a gradient for each tensor, or None if the scalar does not depend on it; the
    further results).
    """
    return _DIFFERENTIATORS[keras.config.backend()](function, values)


def _differentiate_jax(function: Any, values: Any) -> Any:
    import jax

    (_, results), gradients = jax.value_and_grad(function, has_aux=True)(values)
    return gradients, results


def _differentiate_tensorflow(function: Any, values: Any) -> Any:
    import tensorflow as tf

    values = [tf.convert_to_tensor(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(values)
        scalar, results = function(values)
    # The gradient of an embedding matrix is a `tf.IndexedSlices`, which cannot be added.
    return [
        None if gradient is None else tf.convert_to_tensor(gradient)
        for gradient in tape.gradient(scalar, values)
    ], results


def _differentiate_torch(function: Any, values: Any) -> Any:
    import torch

    if not values:
        with torch.no_grad():
            return [], function(values)[1]
    values = [v if v.requires_grad else v.detach().requires_grad_() for v in values]
    scalar, results = function(values)
    gradients = list(torch.autograd.grad(scalar, values, allow_unused=True))
    # Otherwise the graph of this pass would stay in memory during the next pass.
    return gradients, keras.tree.map_structure(
        lambda x: x.detach() if torch.is_tensor(x) else x, results
    )


_DIFFERENTIATORS = {
    "jax": _differentiate_jax,
    "tensorflow": _differentiate_tensorflow,
    "torch": _differentiate_torch,
}


def differentiate_twice(
    function: Callable[[Tensor], tuple[Tensor, Any]], value: Tensor
) -> tuple[Tensor, Tensor, Any]:
    """(the scalar of a function, its gradient by `value`, the further results of the function).

    Within a function that `differentiate` differentiates, both can be differentiated again.
    """
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        (scalar, results), gradient = jax.value_and_grad(function, has_aux=True)(value)
    elif backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(value)
            scalar, results = function(value)
        gradient = tape.gradient(scalar, value)
    else:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        # The other kernels of attention have no second derivative.
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            scalar, results = function(value)
        (gradient,) = torch.autograd.grad(scalar, value, create_graph=True)
    return scalar, gradient, results


def without_recording() -> contextlib.AbstractContextManager[Any]:
    """The scope in which variables are updated. PyTorch must not record it."""
    if keras.config.backend() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.no_grad()
