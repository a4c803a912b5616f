"""Computes the layers within a layer or a model, without Keras' work for a single layer."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras.src.backend.common.variables import AutocastScope, get_autocast_scope

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.bound_layers import BINDERS
from keras_bert_suite.layers.eager_pass import find_pass


def call_inner(layer: keras.layers.Layer, x: Tensor, **arguments: Any) -> Tensor:
    """The output of a layer that another layer of this package is made of.

    `Layer.__call__` of Keras converts arguments, looks for masks, opens scopes and fills in
    `training`: some 600 calls of Python, 0.1 ms, for each of the 14 layers of a block. Keras has
    done this for the layer around it. TensorFlow and JAX do it once for a compiled step, but
    PyTorch in each step. So under PyTorch `layer.call` is called itself.

    The whole call is kept where something of it would be lost: for symbolic tensors, for a layer
    that is not built or has another dtype than its input, with hooks of PyTorch, and with a
    regularizer of outputs. The scope in which the weights of a mixed policy are rounded is opened
    here. Quantization and LoRA are in the calls of the layers themselves.

    Args:
        layer: the inner layer.
        x: its first input. A float array is of the dtype in which the layer around it computes.
        **arguments: others of its `call`. A layer that has `training` must get it.
    """
    return find_call(layer, x)(x, **arguments)


def find_call(layer: Any, x: Tensor) -> Callable[..., Any]:
    """`choose_call` of a layer with one tensor to compute, asked once in a repeated pass."""
    now = find_pass()
    if now is None or not now.binds(layer):
        return choose_call(layer, x)
    key = id(layer), x.dtype, now.describe_place()
    if key not in now.bound:
        now.bound[key] = _bind(layer, x)
    return now.bound[key]


def _bind(layer: Any, x: Tensor) -> Callable[..., Any]:
    """The function by which each call of a pass computes a layer.

    A layer may have `bind`, which returns a function that asks for nothing but its inputs, or None.
    """
    call = choose_call(layer, x)
    if call != layer.call:
        return call
    bind = BINDERS.get(type(layer))
    bound = bind(layer) if bind else layer.bind() if hasattr(layer, "bind") else None
    return call if bound is None else bound


def choose_call(layer: Any, *inputs: Any) -> Callable[..., Any]:
    """The function by which a layer computes inputs: arrays, dicts of arrays, or None.

    It is the layer itself, or under PyTorch, by the rule of `call_inner`, its `call`.
    """
    if keras.config.backend() != "torch":
        return layer
    # Keras looks for the policy of a layer at each reading of a dtype.
    policy = layer.dtype_policy
    if type(policy) is keras.dtype_policies.DTypePolicyMap:
        policy = policy[layer.path]
    dtype = policy.compute_dtype
    for x in inputs:
        if x is not None and not _needs_no_cast(x, dtype):
            return layer
    if needs_whole_call(layer):
        return layer
    call = layer.call if policy.quantization_mode is None else layer.quantized_call
    scope = get_autocast_scope()
    # The dtype to which the layer rounds its weights when it reads them. One without `autocast`,
    # such as a table of embeddings, reads them as they are.
    rounded = dtype if dtype != policy.variable_dtype and layer.autocast else None
    if rounded == (scope and scope.dtype):
        return call
    return functools.partial(_call_in_scope, call, rounded)


def needs_whole_call(layer: Any) -> bool:
    """Whether a layer is not built, has hooks of PyTorch, or a regularizer of outputs."""
    return not layer.built or any(find_hooks(layer)) or layer.activity_regularizer is not None


def find_hooks(layer: Any) -> tuple[dict[int, Any], ...]:
    """The dicts in which PyTorch keeps the hooks of a layer."""
    return (
        layer._forward_hooks,
        layer._forward_pre_hooks,
        layer._backward_hooks,
        layer._backward_pre_hooks,
    )


def _call_in_scope(call: Callable[..., Any], dtype: str | None, *args: Any, **kwargs: Any) -> Any:
    with AutocastScope(dtype):
        return call(*args, **kwargs)


def _needs_no_cast(x: Any, dtype: str) -> bool:
    """Whether a layer that computes in `dtype` takes an input as it is."""
    if isinstance(x, dict):
        return all(y is None or _needs_no_cast(y, dtype) for y in x.values())
    # Symbolic tensors have names of dtypes, which are not among PyTorch's.
    name = _torch_dtypes().get(getattr(x, "dtype", None))
    return name == dtype or name == ""


@functools.cache
def _torch_dtypes() -> dict[Any, str]:
    """PyTorch's dtypes -> Keras' names of floats, "" for others. Symbolic tensors have names."""
    import torch

    floats = ("float32", "bfloat16", "float16", "float64")
    others = dict.fromkeys((torch.int32, torch.int64, torch.bool, torch.int8, torch.uint8), "")
    return {**others, **{getattr(torch, name): name for name in floats}}
