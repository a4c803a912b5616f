"""Rounds the weights of a mixed policy all at once, under PyTorch."""

import functools
from typing import Any

import keras

from keras_bert_suite.annotations import Tensor


def round_weights(model: keras.Model, training: bool | None) -> dict[tuple[int, str], Tensor]:
    """Rounds weights of a model together: (id of a variable, dtype) -> tensor.

    Keras rounds each weight of a mixed policy when a layer reads it. For a BERT of 12 layers these
    are 200 calls, half of the time that Python takes for a forward pass. The rounded weights are
    kept until the pass ends, and their gradients until all of them are known.

    Args:
        model: a task, or a backbone. Its layers that read their weights by `read_weight` have the
            attribute `is_rounded_together`.
        training: whether gradients will be taken.
    """
    return {
        (id(variable), dtype): value
        for dtype, variables in _list_rounded(model, training).items()
        for variable, value in zip(variables, _round(variables, dtype), strict=True)
    }


def _list_rounded(model: Any, training: Any) -> dict[str, list[keras.Variable]]:
    """dtype -> the weights that are read rounded to it."""
    weights: dict[str, list[keras.Variable]] = {}
    for layer in model._flatten_layers(include_self=False):
        if training and getattr(layer, "remat", False):
            return {}  # A block that is computed twice must not keep what it rounds.
        is_read_by_us = getattr(layer, "is_rounded_together", False)
        if not is_read_by_us or getattr(layer, "lora_enabled", False):
            continue
        dtype = layer.compute_dtype
        for variable in layer._trainable_variables:
            value = variable._value
            # The weights of norms are rounded for the kernel of a GPU alone.
            is_read_rounded = layer.autocast or value.device.type != "cpu"
            if is_read_rounded and value.is_floating_point() and variable._dtype != dtype:
                weights.setdefault(dtype, []).append(variable)
    return weights


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
