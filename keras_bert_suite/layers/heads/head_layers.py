"""Layers between an encoder and the head of a task on tokens: opened, called and checked."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Tensor

#: The forms of an argument `head_layers`.
HeadLayers: TypeAlias = keras.layers.Layer | Mapping[str, Any] | Sequence[Any] | None

#: The names under which layers take a padding mask. Keras' own layers call it `mask`.
_MASK_ARGUMENTS = ("mask", "padding_mask", "attention_mask")

#: Parameters that need no argument.
_STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

#: The lengths of the row by which a layer is checked, without and with padding.
_LENGTHS = (5, 9)


def open_head_layers(head_layers: HeadLayers) -> list[keras.layers.Layer]:
    """The layers of `head_layers`: a layer, its configuration, or a list of them; None for none."""
    if head_layers is None:
        return []
    if not isinstance(head_layers, (list, tuple)):
        head_layers = [head_layers]
    layers = [
        keras.layers.deserialize(dict(layer)) if isinstance(layer, Mapping) else layer
        for layer in head_layers
    ]
    for layer in layers:
        if not isinstance(layer, keras.layers.Layer):
            raise ValueError(
                f"head_layers must be a Keras layer or a list of layers, got {layer!r}. An example "
                "is keras.layers.Bidirectional(keras.layers.LSTM(128, return_sequences=True))."
            )
    return layers


def call_head_layers(
    layers: Sequence[keras.layers.Layer], states: Any, mask: Tensor, check: bool = True
) -> Tensor:
    """Calls layers one after the other: symbolic float (B, L, H) -> (B, L, P), 0 on padding.

    Args:
        layers: list of at least one layer. If the `takes_hidden_states` of the first is true, it
            takes a list of all hidden states.
        states: symbolic float (B, L, H), or a list of them.
        mask: symbolic int (B, L), 0 on padding.
        check: bool, whether the layers may be wrong: change the length of a row, or depend on
            padding. Layers of a file were checked before. Under JAX a check of an LSTM takes two
            seconds.
    """
    is_token = ops.cast(mask, "bool")
    if not isinstance(states, list):
        states = _hide_padding(states, is_token)
    for layer in layers:
        if isinstance(states, list) != takes_hidden_states(layer):
            raise ValueError(
                f"The layer {layer.name!r} of head_layers takes the hidden states of all layers of "
                "the encoder, so it must be the first."
            )
        given, states = states, _call(layer, states, is_token)
        if check:
            _check(layer, given)
        states = _hide_padding(states, is_token)
    return states


def takes_hidden_states(layer: keras.layers.Layer) -> bool:
    """Whether a layer is called with the hidden states of all layers of an encoder."""
    return getattr(layer, "takes_hidden_states", False)


def _call(layer: keras.layers.Layer, states: Any, is_token: Tensor) -> Tensor:
    parameters = inspect.signature(layer.call).parameters
    needed = [
        name for name, p in parameters.items() if p.default is p.empty and p.kind not in _STARS
    ]
    needed = [name for name in needed[1:] if name not in _MASK_ARGUMENTS]
    if needed:
        raise ValueError(
            f"The layer {layer.name!r} of head_layers takes {needed[0]!r} beside the states. Write "
            "a layer that takes the states alone and calls it."
        )
    names = [name for name in _MASK_ARGUMENTS if name in parameters]
    return layer(states, **{names[0]: is_token}) if names else layer(states)


def _hide_padding(states: Tensor, is_token: Tensor) -> Tensor:
    """The states with 0 on padding, where they may be any number.

    A layer that takes no mask, such as a convolution, then sees zeros in padding, as beyond the end
    of a row.
    """
    return ops.where(is_token[:, :, None], states, 0.0)


def _check(layer: keras.layers.Layer, given: Any) -> None:
    """Calls a built layer with a row, and with the row and padding. The states must be the same."""
    generator = np.random.default_rng(0)
    rows = [
        generator.normal(size=(1, _LENGTHS[1], tensor.shape[-1])).astype("float32")
        for tensor in keras.tree.flatten(given)
    ]
    is_token = np.arange(_LENGTHS[1])[None] < _LENGTHS[0]
    alone, padded = (_call_on(layer, given, rows, is_token[:, :n]) for n in _LENGTHS)
    for states, length in zip((alone, padded), _LENGTHS, strict=True):
        if states.ndim != 3 or states.shape[:2] != (1, length):
            raise ValueError(
                f"The layer {layer.name!r} of head_layers made an array {states.shape} of states "
                f"{(1, length, rows[0].shape[-1])}. It must make one vector of each token, (B, L, "
                "P). A recurrent layer needs return_sequences=True, a convolution padding='same' "
                "and strides=1, a ScalarMix or LastLayers pooling=None."
            )
    # Half precision rounds differently at another length.
    close = 1e-3 if layer.compute_dtype in ("float32", "float64") else 0.1
    if not np.allclose(alone, padded[:, : _LENGTHS[0]], rtol=close, atol=close):
        raise ValueError(
            f"The layer {layer.name!r} of head_layers reads padding: with padding behind a row its "
            "states are others, so an answer would depend on which rows share a batch. Its `call` "
            f"needs an argument {_MASK_ARGUMENTS[0]!r}, bool (B, L), and must leave out where it "
            "is False. A keras.Sequential of convolutions must be a list of layers instead, so "
            "that each of them sees 0 there."
        )


def _call_on(
    layer: keras.layers.Layer, given: Any, rows: Sequence[np.ndarray], is_token: Tensor
) -> np.ndarray:
    """float32, the states that a layer makes of the first tokens of rows."""
    states: Any = [ops.convert_to_tensor(row[:, : is_token.shape[1]]) for row in rows]
    is_token = ops.convert_to_tensor(is_token)
    if not isinstance(given, list):
        states = _hide_padding(states[0], is_token)
    return ops.convert_to_numpy(ops.cast(_call(layer, states, is_token), "float32"))
