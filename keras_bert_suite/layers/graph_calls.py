"""Runs the graph of a functional model under PyTorch, without Keras' whole call of each layer.

As in `call_inner`, Keras' work for the call of the model serves its layers too.
"""

import functools
import inspect
from typing import Any, NamedTuple

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.eager_pass import to_tensor
from keras_bert_suite.layers.inner_call import choose_call, find_call

#: Keras' own layers that are called directly. Other packages' layers are always called whole.
_KERAS_LAYERS = (keras.layers.Activation, keras.layers.Dense, keras.layers.Dropout)


def find_plain_inputs(
    model: keras.Model, inputs: Any, training: bool | None, mask: Any = None
) -> dict[str, Tensor] | None:
    """The tensors on which `run_graph` equals Keras; None if Keras must run the graph.

    Keras must run it for symbolic tensors, for inputs that it would reshape or refuse, for masks of
    Keras, and if it must find out whether the model trains. In a compiled call its work is gone.
    """
    symbolic = model.input
    if (
        keras.config.backend() != "torch"
        or training is None
        or _has_mask(mask)
        or _is_compiling()
        or not isinstance(inputs, dict)
        or not isinstance(symbolic, dict)
        or inputs.keys() != symbolic.keys()
        or any(isinstance(x, keras.KerasTensor) for x in inputs.values())
        or any(
            len(getattr(inputs[name], "shape", ())) != len(x.shape) for name, x in symbolic.items()
        )
    ):
        return None
    return {name: to_tensor(inputs[name], x.dtype) for name, x in symbolic.items()}


def _is_compiling() -> bool:
    import torch

    return torch.compiler.is_compiling()


def _has_mask(mask: Any) -> bool:
    """Whether there is a mask. For inputs by name Keras passes a dict, in which None is no mask."""
    return any(x is not None for x in (mask.values() if isinstance(mask, dict) else (mask,)))


def run_graph(model: keras.Model, inputs: dict[str, Tensor], training: bool) -> Any:
    """The outputs of a functional model for tensors by name, from `find_plain_inputs`."""
    # It refers to the layers of the model, so only the model may hold it: both are freed together.
    own = vars(model)  # `setattr` of Keras would track the layers once more.
    if "run_graph" not in own:
        own["run_graph"] = _Graph(model)
    return own["run_graph"].run(inputs, training)


class _Slot(int):
    """The place of a tensor of the graph among the values of a run."""


class _Step(NamedTuple):
    """The call of a layer or an operation: its arguments, with `_Slot`s, and what it is."""

    operation: Any
    args: Any
    kwargs: Any
    outputs: list[_Slot]
    is_layer: bool
    is_whole: bool  # Whether it is always called by Keras.


class _Graph:
    """The operations of a functional model in their order, which Keras finds anew at each call."""

    def __init__(self, model: Any) -> None:
        slots: dict[int, _Slot] = {}

        def place(x: Any) -> Any:
            is_symbolic = isinstance(x, keras.KerasTensor)
            return slots.setdefault(id(x), _Slot(len(slots))) if is_symbolic else x

        self._inputs = {name: place(x) for name, x in model.input.items()}
        self._steps = []
        is_whole = False  # After a layer of a guest, which may have made a mask of Keras.
        for _, nodes in sorted(model._nodes_by_depth.items(), reverse=True):
            for node in nodes:
                if node.is_input:
                    continue
                operation = node.operation
                is_layer = isinstance(operation, keras.layers.Layer)
                is_whole = is_whole or (is_layer and not _is_known(operation))
                args, kwargs = node.arguments.convert(place)
                outputs = [place(x) for x in node.outputs]
                self._steps.append(_Step(operation, args, kwargs, outputs, is_layer, is_whole))
        self._outputs = keras.tree.map_structure(place, model.output)
        self._size = len(slots)

    def run(self, inputs: dict[str, Tensor], training: bool) -> Any:
        values: list[Any] = [None] * self._size
        for name, slot in self._inputs.items():
            values[slot] = inputs[name]
        for step in self._steps:
            args, kwargs = _fill(step.args, values), _fill(step.kwargs, values)
            if step.is_layer:
                # Keras, too, puts this in the place of a `training` in the graph.
                kwargs["training"] = training
            if step.is_layer and not step.is_whole:
                outputs = _call_layer(step.operation, *args, **kwargs)
            else:
                outputs = step.operation(*args, **kwargs)
            is_one = type(outputs) not in (dict, list, tuple)
            flat = [outputs] if is_one else keras.tree.flatten(outputs)
            for slot, x in zip(step.outputs, flat, strict=False):
                values[slot] = x
        outputs = _fill(self._outputs, values)
        return outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs


def _fill(structure: Any, values: list[Any]) -> Any:
    """A structure of dicts, lists and tuples with values in the place of its `_Slot`s."""
    kind = type(structure)
    if kind is _Slot:
        return values[structure]
    if kind is tuple or kind is list:
        return kind(_fill(x, values) for x in structure)
    if kind is dict:
        return {name: _fill(x, values) for name, x in structure.items()}
    return structure


def _call_layer(layer: Any, *args: Any, training: bool, **kwargs: Any) -> Any:
    """The outputs of a layer or of a model of a graph, called directly where that is the same."""
    if layer._remat_mode:
        call = layer
    elif len(args) == 1 and not kwargs and type(args[0]) not in (dict, list, tuple):
        call = find_call(layer, args[0])
    else:
        call = choose_call(layer, *args, *kwargs.values())
    if call is not layer and _is_functional(layer) and kwargs.keys() <= {"mask"}:
        inputs = find_plain_inputs(layer, args[0], training, kwargs.get("mask"))
        if inputs is not None:
            return run_graph(layer, inputs, training)
    if call is layer or takes_training(layer.__class__):
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
def takes_training(cls: Any) -> bool:
    """Whether the `call` of a class of layers has an argument `training`."""
    return "training" in inspect.signature(cls.call).parameters
