"""Computes the layers within a layer, without what Keras does for a layer of a model."""

import functools
from typing import Any

import keras
from keras.src.backend.common.variables import get_autocast_scope

from keras_bert_suite.annotations import Tensor


def call_inner(layer: keras.layers.Layer, x: Tensor, **arguments: Any) -> Tensor:
    """The output of a layer that another layer of this package is made of.

    `Layer.__call__` of Keras converts arguments, looks for masks, opens scopes and fills in
    `training`: some 600 calls of Python, 0.1 ms, for each of the 14 layers of a block. Keras has
    done this for the layer around it. TensorFlow and JAX do it once for a compiled step, but
    PyTorch in each step. So under PyTorch `layer.call` is called itself.

    The whole call is kept where something of it would be lost: for symbolic tensors, for a layer
    that is not built or has another dtype than its input, outside of the scope in which the weights
    of a mixed policy are rounded, with hooks of PyTorch, and with a regularizer of outputs.
    Quantization and LoRA are in the calls of the layers themselves.

    Args:
        layer: the inner layer.
        x: float, its first input.
        **arguments: others of its `call`. A layer that has `training` must get it.
    """
    if keras.config.backend() != "torch" or not _is_plain(layer, x):
        return layer(x, **arguments)
    if layer.quantization_mode is not None:
        return layer.quantized_call(x, **arguments)
    return layer.call(x, **arguments)


def _is_plain(layer: Any, x: Tensor) -> bool:
    return (
        layer.built
        and _torch_dtypes().get(getattr(x, "dtype", None)) == layer.compute_dtype
        and _rounds_weights(layer)
        and not layer._forward_hooks
        and not layer._forward_pre_hooks
        and not layer._backward_hooks
        and not layer._backward_pre_hooks
        and layer.activity_regularizer is None
    )


def _rounds_weights(layer: Any) -> bool:
    """Whether weights are read in the dtype that a layer computes in."""
    if layer.variable_dtype == layer.compute_dtype:
        return True
    scope = get_autocast_scope()
    return scope is not None and scope.dtype == layer.compute_dtype


@functools.cache
def _torch_dtypes() -> dict[Any, str]:
    """PyTorch's floating dtypes -> Keras' names. Symbolic tensors have names."""
    import torch

    return {getattr(torch, name): name for name in ("float32", "bfloat16", "float16", "float64")}
