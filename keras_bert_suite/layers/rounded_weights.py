"""Rounds the weights of a mixed policy all at once, under PyTorch."""

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import keras
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.variables import get_autocast_scope

from keras_bert_suite.annotations import Tensor

#: `weights`, within `rounded_weights`: (id of a variable, dtype) -> tensor.
_rounded = threading.local()


def read_weight(weight: Any, dtype: str | None = None) -> Tensor | None:
    """The tensor of a weight: of a `keras.Variable`, or of LoRA's sum with one; None for None.

    It is rounded as Keras' scope of the layer says, and may be rounded to `dtype` where there is no
    such scope.
    """
    if not isinstance(weight, keras.Variable):
        return weight
    scope = get_autocast_scope()
    dtype = scope.dtype if scope and scope.dtype else dtype
    found = vars(_rounded).get("weights", {}).get((id(weight), dtype))
    return weight.value if found is None or in_stateless_scope() else found


@contextlib.contextmanager
def rounded_weights(
    model: keras.Model, layer_types: tuple[type[keras.layers.Layer], ...], training: bool | None
) -> Iterator[None]:
    """Rounds weights of a model together, and lets `read_weight` find them.

    Keras rounds each weight of a mixed policy when a layer reads it. For a BERT of 12 layers these
    are 200 calls, half of the time that Python takes for a forward pass. The rounded weights are
    kept until the pass ends, and their gradients until all of them are known.

    Args:
        model: a task, or a backbone, that computes eagerly within the context. A model within it
            adds nothing. In float32 nothing is looked for.
        layer_types: the layers that read their weights by `read_weight`.
        training: whether gradients will be taken.
    """
    policy = getattr(model, "backbone", model).dtype_policy
    is_mixed = policy.compute_dtype != policy.variable_dtype
    if not is_mixed or not _is_eager_torch() or hasattr(_rounded, "weights"):
        yield
        return
    _rounded.weights = {
        (id(variable), dtype): value
        for dtype, variables in _list_rounded(model, layer_types, training).items()
        for variable, value in zip(variables, _round(variables, dtype), strict=True)
    }
    try:
        yield
    finally:
        del _rounded.weights


def _list_rounded(model: Any, layer_types: Any, training: Any) -> dict[str, list[keras.Variable]]:
    """dtype -> the weights that are read rounded to it."""
    weights: dict[str, list[keras.Variable]] = {}
    for layer in model._flatten_layers(include_self=False):
        if training and getattr(layer, "remat", False):
            return {}  # A block that is computed twice must not keep what it rounds.
        if not isinstance(layer, layer_types) or getattr(layer, "lora_enabled", False):
            continue
        dtype = layer.compute_dtype
        for variable in layer._trainable_variables:
            value = variable._value
            # The weights of norms are rounded for the kernel of a GPU alone.
            is_read_rounded = layer.autocast or value.device.type != "cpu"
            if is_read_rounded and value.is_floating_point() and variable._dtype != dtype:
                weights.setdefault(dtype, []).append(variable)
    return weights


def _is_eager_torch() -> bool:
    if keras.config.backend() != "torch" or in_stateless_scope():
        return False
    import torch

    return not torch.compiler.is_compiling()


def _round(variables: list[keras.Variable], dtype: str) -> tuple[Tensor, ...]:
    import torch

    return _rounding().apply(getattr(torch, dtype), *(v._value for v in variables))


@functools.cache
def _rounding() -> Any:
    import torch

    class Rounding(torch.autograd.Function):
        """Tensors in another dtype, by one kernel for all; their gradients likewise."""

        generate_vmap_rule = True

        @staticmethod
        def forward(dtype: Any, *weights: Tensor) -> tuple[Tensor, ...]:
            return tuple(_copy(weights, [dtype] * len(weights)))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, outputs: tuple[Tensor, ...]) -> None:
            weights = inputs[1:]
            ctx.set_materialize_grads(False)
            ctx.dtypes = [weight.dtype for weight in weights]
            # Frozen weights stay so. Otherwise PyTorch would take gradients down to the first.
            needed = ctx.needs_input_grad[1:]
            frozen = (x for x, is_needed in zip(outputs, needed, strict=True) if not is_needed)
            ctx.mark_non_differentiable(*frozen)

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
            found = [i for i, gradient in enumerate(gradients) if gradient is not None]
            results: list[Tensor | None] = [None] * len(gradients)
            copies = _copy([gradients[i] for i in found], [ctx.dtypes[i] for i in found])
            for i, copy in zip(found, copies, strict=True):
                results[i] = copy
            return None, *results

    def _copy(tensors: Any, dtypes: list[Any]) -> list[Tensor]:
        if torch.is_grad_enabled():  # Somebody takes gradients of gradients.
            return [x.to(dtype) for x, dtype in zip(tensors, dtypes, strict=True)]
        copies = [torch.empty_like(x, dtype=d) for x, d in zip(tensors, dtypes, strict=True)]
        if copies:
            torch._foreach_copy_(copies, list(tensors))
        return copies

    return Rounding
