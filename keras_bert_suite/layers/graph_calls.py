"""Runs the graph of a functional model under PyTorch, without Keras' whole call of each layer.

As in `call_inner`, Keras' work for the call of the model serves its layers too.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.inner_call import choose_call

#: Keras' own layers that are called directly. Other packages' layers are always called whole.
_KERAS_LAYERS = (keras.layers.Activation, keras.layers.Dense, keras.layers.Dropout)


def find_plain_inputs(
    model: keras.Model, inputs: Any, training: bool | None, mask: Any = None
) -> dict[str, Tensor] | None:
    """The tensors on which `run_graph` equals Keras; None if Keras must run the graph.

    Keras must run it for symbolic tensors, for inputs that it would reshape or refuse, for masks of
    Keras, and if it must find out whether the model trains.
    """
    symbolic = model.input
    if (
        keras.config.backend() != "torch"
        or training is None
        or _has_mask(mask)
        or not isinstance(inputs, dict)
        or not isinstance(symbolic, dict)
        or inputs.keys() != symbolic.keys()
        or any(isinstance(x, keras.KerasTensor) for x in inputs.values())
        or any(
            len(getattr(inputs[name], "shape", ())) != len(x.shape) for name, x in symbolic.items()
        )
    ):
        return None
    return {name: ops.convert_to_tensor(inputs[name], x.dtype) for name, x in symbolic.items()}


def _has_mask(mask: Any) -> bool:
    """Whether there is a mask. For inputs by name Keras passes a dict, in which None is no mask."""
    return any(x is not None for x in (mask.values() if isinstance(mask, dict) else (mask,)))


def run_graph(model: keras.Model, inputs: dict[str, Tensor], training: bool) -> Any:
    """The outputs of a functional model for tensors by name, from `find_plain_inputs`."""
    guest = False  # Whether a layer of a guest was called. It may have made a mask of Keras.

    def choose(operation: Any) -> Callable[..., Any]:
        nonlocal guest
        if not isinstance(operation, keras.layers.Layer):
            return operation
        guest = guest or not _is_known(operation)
        call = operation if guest else functools.partial(_call_layer, operation)
        # Keras, too, puts this in the place of a `training` in the graph.
        return lambda *args, **kwargs: call(*args, **{**kwargs, "training": training})

    outputs = model._run_through_graph(inputs, operation_fn=choose)
    return outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs


def _call_layer(layer: Any, *args: Any, training: bool, **kwargs: Any) -> Any:
    """The outputs of a layer or of a model of a graph, called directly where that is the same."""
    call = layer if layer._remat_mode else choose_call(layer, *args, *kwargs.values())
    if call is not layer and _is_functional(layer) and kwargs.keys() <= {"mask"}:
        inputs = find_plain_inputs(layer, args[0], training, kwargs.get("mask"))
        if inputs is not None:
            return run_graph(layer, inputs, training)
    if call is layer or _takes_training(layer.__class__):
        kwargs["training"] = training
    return call(*args, **kwargs)


def _is_known(layer: Any) -> bool:
    """Whether a layer may be called directly. One of a guest is always called whole."""
    cls = type(layer)
    is_ours = cls.__module__.startswith("keras_bert_suite.")
    return is_ours or cls in _KERAS_LAYERS or _is_functional(layer)


def _is_functional(layer: Any) -> bool:
    """Whether a layer is a functional model of no class but Keras' own, which is not public."""
    return isinstance(layer, keras.Model) and type(layer).__name__ == "Functional"


@functools.cache
def _takes_training(cls: Any) -> bool:
    return "training" in inspect.signature(cls.call).parameters
