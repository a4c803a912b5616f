"""What cannot change within a pass of a model under PyTorch, and is asked once."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.variables import get_autocast_scope

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.rounded_weights import round_weights

#: Results that `once` keeps. All masks of a model together are fewer.
_MOST_KEPT = 16

#: `now`, the `EagerPass` of this thread; not there outside of a pass.
_passes = threading.local()


class EagerPass:
    """What has been asked in the calls of a model with the same weights.

    Args:
        model: a task or a backbone. The weights of a mixed policy are rounded together, here; see
            `round_weights`.
        training: whether gradients will be taken.
        is_repeated: whether the model will be called several times, as for the batches of
            `predict`. Then how each of its layers computes is asked once; see `find_call`.
        has_steps: whether the layers compute very often in a call, as for each token of a text, so
            that the weights are worth another form; see `pack`. This is a repetition, too.

    Attributes:
        device: that of Keras' tensors.
        rounded: dict, (id of a variable, dtype) -> tensor.
        kept: dict, (function, id of a tensor) -> (the tensor, the result); see `once`.
        bound: dict, the calls that `find_call` has chosen in a pass that is repeated.
        packed: dict, (function, id of a layer) -> the result, see `pack`; None without steps.
    """

    def __init__(
        self,
        model: Any,
        training: bool | None,
        is_repeated: bool = False,
        has_steps: bool = False,
    ) -> None:
        import torch

        policy = getattr(model, "backbone", model).dtype_policy
        is_mixed = policy.compute_dtype != policy.variable_dtype
        self.device = keras.ops.convert_to_tensor(0).device
        self.rounded = round_weights(model, training) if is_mixed else {}
        self.kept: dict[Any, tuple[Tensor, Tensor]] = {}
        self.packed: dict[Any, Any] | None = {} if has_steps else None
        self.bound: dict[Any, Callable[..., Tensor]] = {}
        layers = model._flatten_layers() if is_repeated or has_steps else []
        self._own = set(map(id, layers))
        self._takes_gradients = torch.is_grad_enabled
        self._is_mixed = has_mixed_layers(layers)

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        """The context of a call of the model. Within another pass it changes nothing."""
        if find_pass() is not None or not is_eager_torch():
            yield
            return
        _passes.now = self
        try:
            yield
        finally:
            del _passes.now
            self.kept.clear()

    def binds(self, layer: Any) -> bool:
        """Whether a layer is one of the model, in a repeated pass."""
        return id(layer) in self._own

    def describe_place(self) -> tuple[str | None, bool]:
        """What a function for a layer depends on beside its input, within a repeated pass.

        It is the dtype to which weights are rounded here, or None, and whether gradients are taken.
        """
        scope = get_autocast_scope() if self._is_mixed else None
        return scope and scope.dtype, self._takes_gradients()


@contextlib.contextmanager
def eager_pass(
    model: keras.Model, training: bool | None, has_steps: bool = False
) -> Iterator[None]:
    """An `EagerPass` of one call of a model: layers ask less, and keep what they compute.

    A model that is called within adds nothing. Under other backends, and in a compiled step,
    nothing is changed. Arguments: those of `EagerPass`.
    """
    if find_pass() is not None or not is_eager_torch():
        yield
        return
    with EagerPass(model, training, has_steps=has_steps).enter():
        yield


def find_pass() -> EagerPass | None:
    """The pass around a layer, or None."""
    return getattr(_passes, "now", None)


def is_eager_torch() -> bool:
    """Whether PyTorch computes now, operation by operation."""
    if keras.config.backend() != "torch" or in_stateless_scope():
        return False
    import torch

    return not torch.compiler.is_compiling()


def has_mixed_layers(layers: Iterable[keras.layers.Layer]) -> bool:
    """Whether a layer computes in another dtype than that of its weights."""
    return any(layer.compute_dtype != layer.variable_dtype for layer in layers)


def read_weight(weight: Any, dtype: str | None = None) -> Tensor | None:
    """The tensor of a weight: of a `keras.Variable`, or of LoRA's sum with one; None for None.

    It is rounded as Keras' scope of the layer says, and may be rounded to `dtype` where there is no
    such scope.
    """
    if not isinstance(weight, keras.Variable):
        return weight
    scope, now = get_autocast_scope(), find_pass()
    if now is None or in_stateless_scope():
        return weight.value
    dtype = scope.dtype if scope and scope.dtype else dtype
    if dtype is None:
        return weight._value
    found = now.rounded.get((id(weight), dtype))
    return weight.value if found is None else found


def once(function: Callable[[Tensor], Tensor], tensor: Tensor) -> Tensor:
    """`function(tensor)`, computed once in a pass. The function is one of a module.

    For a mask that all layers read in the same way.
    """
    now = find_pass()
    if now is None:
        return function(tensor)
    kept, key = now.kept, (function, id(tensor))
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
    now = find_pass()
    if now is None or now.packed is None:
        return None
    key = function, id(layer)
    if key not in now.packed:
        now.packed[key] = function(layer)
    return now.packed[key]


def to_tensor(x: Any, dtype: str | None = None) -> Tensor:
    """`keras.ops.convert_to_tensor`, which asks anew for the device of each tensor."""
    now = find_pass()
    if now is not None:
        import torch

        if type(x) is torch.Tensor and x.device == now.device:
            if dtype is None or x.dtype is getattr(torch, dtype):
                return x
        elif type(x) is np.ndarray and x.dtype == np.int32 and dtype in (None, "int32"):
            return torch.as_tensor(x, device=now.device)
    return keras.ops.convert_to_tensor(x, dtype)


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
