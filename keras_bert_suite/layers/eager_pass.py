"""What cannot change within a pass of a model under PyTorch, and is asked once."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.variables import get_autocast_scope

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.rounded_weights import round_weights

#: Within `eager_pass`: `rounded`, (id of a variable, dtype) -> tensor; `kept`, (function, id of a
#: tensor) -> (the tensor, the result); with steps also `packed`, (function, id of a layer) -> the
#: result, and `bound`, see `bound_calls`. Without them these are None.
_pass = threading.local()

#: Results that `once` keeps. All masks of a model together are fewer.
_MOST_KEPT = 16


@contextlib.contextmanager
def eager_pass(
    model: keras.Model, training: bool | None, has_steps: bool = False
) -> Iterator[None]:
    """Within it, `read_weight` asks less, and `once` and `pack` keep what they compute.

    Args:
        model: a task, or a backbone, that computes within the context. A model within it adds
            nothing. Under other backends, and in a compiled step, nothing is changed. The weights
            of a mixed policy are rounded together; see `round_weights`.
        training: whether gradients will be taken.
        has_steps: whether the layers compute many times, as for the tokens of a text.
    """
    if hasattr(_pass, "kept") or not _is_eager_torch():
        yield
        return
    policy = getattr(model, "backbone", model).dtype_policy
    is_mixed = policy.compute_dtype != policy.variable_dtype
    _pass.rounded = round_weights(model, training) if is_mixed else {}
    _pass.kept = {}
    _pass.packed = {} if has_steps else None
    _pass.bound = {} if has_steps and not _has_mixed_layers(model) else None
    try:
        yield
    finally:
        del _pass.rounded, _pass.kept, _pass.packed, _pass.bound


def _is_eager_torch() -> bool:
    if keras.config.backend() != "torch" or in_stateless_scope():
        return False
    import torch

    return not torch.compiler.is_compiling()


def _has_mixed_layers(model: keras.Model) -> bool:
    layers = model._flatten_layers()
    return any(layer.compute_dtype != layer.variable_dtype for layer in layers)


def bound_calls() -> dict[Any, Callable[..., Tensor]] | None:
    """(id of a layer, dtype of its input) -> the function by which `call_inner` computes the layer.

    None in a pass without steps, and where layers round their weights: one layer may then compute
    in more than one way.
    """
    return getattr(_pass, "bound", None)


def read_weight(weight: Any, dtype: str | None = None) -> Tensor | None:
    """The tensor of a weight: of a `keras.Variable`, or of LoRA's sum with one; None for None.

    It is rounded as Keras' scope of the layer says, and may be rounded to `dtype` where there is no
    such scope.
    """
    if not isinstance(weight, keras.Variable):
        return weight
    scope = get_autocast_scope()
    rounded = getattr(_pass, "rounded", None)
    if rounded is None or in_stateless_scope():
        return weight.value
    dtype = scope.dtype if scope and scope.dtype else dtype
    if dtype is None:
        return weight._value
    found = rounded.get((id(weight), dtype))
    return weight.value if found is None else found


def once(function: Callable[[Tensor], Tensor], tensor: Tensor) -> Tensor:
    """`function(tensor)`, computed once in a pass. The function is one of a module.

    For a mask that all layers read in the same way.
    """
    kept = getattr(_pass, "kept", None)
    if kept is None:
        return function(tensor)
    key = function, id(tensor)
    if key not in kept:
        if len(kept) == _MOST_KEPT:  # A pass that writes a text has other masks for each token.
            kept.clear()
        kept[key] = tensor, function(tensor)  # The tensor is kept, so that its id stays its own.
    return kept[key][1]


def pack(function: Callable[[Any], Any], layer: keras.layers.Layer) -> Any:
    """`function(layer)`, computed once in a pass with steps; None in another pass.

    For a form of the weights of a layer that makes each step faster, and takes as long as some
    steps. The function is one of a module.
    """
    packed = getattr(_pass, "packed", None)
    if packed is None:
        return None
    key = function, id(layer)
    if key not in packed:
        packed[key] = function(layer)
    return packed[key]


def tensor_functions() -> Any:
    """The namespace of functions of tensors: PyTorch's own under its backend, else `keras.ops`.

    For names that both have, and tensors that are not symbolic. Keras' functions ask for the device
    and the dtypes of their arguments, which takes ten times as long as a small product.
    """
    if keras.config.backend() != "torch":
        return keras.ops
    import torch

    return torch


def to_float32(x: Tensor) -> Tensor:
    """A float tensor in float32."""
    if keras.config.backend() == "torch":
        return x.float()
    return keras.ops.cast(x, "float32")
