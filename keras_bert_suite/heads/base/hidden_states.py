"""Finds the hidden states of all layers of a backbone, and pools them to one vector."""

from collections.abc import Mapping
from typing import Any

import keras
import keras_hub

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.heads.base.token_states import encode_tokens, find_unused, list_unused
from keras_bert_suite.layers.poolings.pooling import (
    SUMMARY_POOLINGS,
    call_pooling,
    get_pooling,
    take_summary,
)


def open_new_pooling(arguments: dict[str, Any], name: str) -> list[str]:
    """Makes the pooling layer of a task that is built on a checkpoint, in its `arguments`.

    It returns regular expressions for the weights of the layer. No checkpoint of another library
    has them.
    """
    if isinstance(arguments.get(name), Mapping):
        arguments[name] = get_pooling(arguments[name])
    pooling = arguments.get(name)
    return [f"{pooling.name}/.*"] if isinstance(pooling, keras.layers.Layer) else []


def pool_summary(
    backbone: keras_hub.models.Backbone, outputs: Any, inputs: dict[str, Tensor]
) -> Tensor:
    """Symbolic float (B, H), the vectors of rows that a backbone makes, by itself or by a token.

    If its outputs have no `pooled_output`, it is the sequence output of the summary token.
    """
    if isinstance(outputs, dict):
        if "pooled_output" in outputs:
            return outputs["pooled_output"]
        outputs = outputs["sequence_output"]
    return take_summary(outputs, inputs.get("padding_mask"), find_summary_place(backbone))


def find_summary_place(backbone: keras_hub.models.Backbone) -> str:
    """The `summary_place` of a backbone, "first" or "last". In KerasHub's encoders it is first."""
    return getattr(backbone, "summary_place", "first")


def find_pooled_summary(
    backbone: keras_hub.models.Backbone, pooling: keras.layers.Layer | None
) -> str | None:
    """The `summary_place` that a task reads a row from; None if it reads several tokens."""
    if pooling is None:
        return find_summary_place(backbone)
    places = SUMMARY_POOLINGS.items()
    return next((place for place, kind in places if isinstance(pooling, kind)), None)


def pool_hidden_states(
    backbone: keras_hub.models.Backbone,
    pooling: keras.layers.Layer,
    inputs: dict[str, Tensor] | None = None,
) -> tuple[Tensor, frozenset[str]]:
    """Calls a backbone, and a pooling layer on its outputs.

    The pooling is called with the sequence output (B, L, H) and the padding mask (B, L). If its
    `takes_hidden_states` is true, it gets a list of (B, L, H) instead, the embeddings and the
    output of each transformer layer. `inputs` are symbolic tensors; None for the backbone's own.

    Returns:
        tuple (symbolic (B, P); frozenset of str, the paths of the backbone's variables that the
        vectors do not depend on).

    Raises:
        ValueError: if the backbone has no padding mask, or does not name the layers that the
            pooling takes; or if the pooling does not return one vector for each row.
    """
    inputs = backbone.input if inputs is None else inputs
    if "padding_mask" not in inputs:
        raise ValueError(
            f"A {type(backbone).__name__} has no input padding_mask, so a pooling cannot tell "
            "tokens from padding. Use a TextClassifier with pooling=None."
        )
    if getattr(pooling, "takes_hidden_states", False):
        encoder = make_layer_model(backbone)
        encoded = encoder(inputs)
        unused = list_unused(backbone, encoder)
    else:
        encoded = encode_tokens(backbone, inputs)
        unused = find_unused(backbone)
    pooled = call_pooling(pooling, encoded, inputs["padding_mask"])
    check_pooled(pooled, pooling)
    return pooled, unused


def check_pooled(pooled: Any, pooling: keras.layers.Layer) -> None:
    """Raises a ValueError if a pooling has not made one vector (B, P) of each row."""
    shape = getattr(pooled, "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] is None:
        raise ValueError(
            "A pooling layer must return one vector (B, P) for each row, got "
            f"{shape or type(pooled).__name__} from {type(pooling).__name__}."
        )


def make_layer_model(backbone: keras_hub.models.Backbone) -> keras.Model:
    """A model from the inputs of a backbone to its hidden states, a list of outputs (B, L, H).

    They are the embeddings, that is, the input of the first transformer layer, and the output of
    each transformer layer. The last one is the sequence output, which in some models is the output
    of the last layer after a norm. A backbone that does not name its layers is a ValueError.
    """
    nodes = [node for _, node in list_layer_calls(backbone)]
    states = [nodes[0].input_tensors[0], *(node.outputs[0] for node in nodes[:-1])]
    # An encoder that a user has built may have no such layer. Its rows are never packed.
    unpack = next((part for part in backbone.layers if part.name == "unpack_sequences"), None)
    if unpack is not None:
        states = [unpack(state, backbone.input["padding_mask"]) for state in states]
    encoded = backbone.output
    states.append(encoded["sequence_output"] if isinstance(encoded, dict) else encoded)
    return keras.Model(backbone.input, states, name="layer_outputs")


def list_layer_calls(backbone: keras_hub.models.Backbone) -> list[tuple[keras.layers.Layer, Any]]:
    """list of (transformer layer, Keras' node of its call), in the order of the calls.

    Args, Raises: as for `make_layer_model`.
    """
    layers = keras.tree.flatten(getattr(backbone, "transformer_layers", None) or [])
    if not layers:
        raise ValueError(
            f"A {type(backbone).__name__} does not name its transformer layers, so their outputs "
            "cannot be found. To pool, choose a pooling of the last layer, such as MeanPooling()."
        )
    # ALBERT calls a layer several times. So the states are followed from call to call. Some layers
    # of KerasHub return a tuple, with the hidden states first.
    next_calls: dict[int, tuple[keras.layers.Layer, Any]] = {}
    for layer in layers:
        for node in layer._inbound_nodes:
            next_calls.setdefault(id(node.input_tensors[0]), (layer, node))
    calls = [(layers[0], layers[0]._inbound_nodes[0])]
    while id(calls[-1][1].outputs[0]) in next_calls:
        calls.append(next_calls[id(calls[-1][1].outputs[0])])
    return calls
