"""Runs the graph of a functional model under PyTorch, without Keras' whole call of each layer.

The rule is that of `call_inner`: Keras has done for the model what it would do for its layers.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
from keras.src.models.functional import Functional

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.inner_call import choose_call

#: Keras' own layers that are called directly. Those of guests are always called whole.
_KERAS_LAYERS = (keras.layers.Activation, keras.layers.Dense, keras.layers.Dropout, Functional)


def find_plain_inputs(
    model: keras.Model, inputs: Any, training: bool | None, mask: Any = None
) -> dict[str, Tensor] | None:
    """The tensors on which `run_graph` gives what Keras gives; None if Keras must run the graph.

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
    tensors = {id(x): inputs[name] for name, x in model.input.items()}

    def fill_in(x: Any) -> Any:
        if isinstance(x, keras.KerasTensor):
            return tensors[id(x)]
        if isinstance(x, dict):
            return {name: fill_in(value) for name, value in x.items()}
        return keras.tree.map_structure(fill_in, x) if isinstance(x, (list, tuple)) else x

    for depth in sorted(model._nodes_by_depth, reverse=True):
        for node in model._nodes_by_depth[depth]:
            if node.is_input:
                continue
            args = [fill_in(x) for x in node.arguments.args]
            kwargs = {name: fill_in(x) for name, x in node.arguments.kwargs.items()}
            outputs = _call_operation(node.operation, args, kwargs, training)
            flat = [outputs] if ops.is_tensor(outputs) else keras.tree.flatten(outputs)
            tensors.update(zip(map(id, node.outputs), flat, strict=True))
    outputs = fill_in(model.output)
    return outputs[0] if isinstance(outputs, (list, tuple)) and len(outputs) == 1 else outputs


def _call_operation(operation: Any, args: list[Any], kwargs: dict[str, Any], training: bool) -> Any:
    """The outputs of a layer, of a model or of another operation of a graph."""
    if not isinstance(operation, keras.layers.Layer):
        return operation(*args, **kwargs)
    # Keras, too, puts that of the model in the place of one in the graph.
    kwargs.pop("training", None)
    call = _choose_call(operation, [*args, *kwargs.values()])
    if call is not operation and type(operation) is Functional and kwargs.keys() <= {"mask"}:
        inputs = find_plain_inputs(operation, args[0], training, kwargs.get("mask"))
        if inputs is not None:
            return run_graph(operation, inputs, training)
    if call is operation or operation._call_has_context_arg["training"]:
        kwargs["training"] = training
    return call(*args, **kwargs)


def _choose_call(layer: Any, inputs: list[Any]) -> Callable[..., Any]:
    """`choose_call` for a layer that may be another's, or get masks of Keras."""
    cls = type(layer)
    is_known = cls in _KERAS_LAYERS or cls.__module__.startswith("keras_bert_suite.")
    if not is_known or layer._remat_mode or any(hasattr(x, "_keras_mask") for x in inputs):
        return layer
    return choose_call(layer, *inputs)
