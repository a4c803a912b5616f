"""Saves in the configuration of a model which of its layers are frozen.

Keras saves `trainable` of a model, but not of its layers. Under PyTorch, a KerasHub backbone that
is being built does not get the `trainable` of the model.
"""

import keras


def read_trainability(model: keras.Model, without: keras.Model | None = None) -> dict[str, bool]:
    """Finds the layers whose `trainable` differs from the `trainable` of the layer around them.

    The result is a dict of layer path -> bool. The layers of the model `without` are left out.
    """
    known, differing = {"": model.trainable}, {}
    for layer in _layers_with_weights(model, without):
        around = max((p for p in known if layer.path.startswith(p)), key=len)
        if layer.trainable != known[around]:
            differing[layer.path] = layer.trainable
        known[f"{layer.path}/"] = layer.trainable
    return differing


def restore_trainability(model: keras.Model, differing: dict[str, bool]) -> None:
    """Freezes and thaws layers as `read_trainability` has found them.

    The own `trainable` of the model is handed down to all its layers first.
    """
    model.trainable = model.trainable
    # Outer layers come first. Each hands its `trainable` down to the layers within it.
    for layer in _layers_with_weights(model):
        if layer.path in differing:
            layer.trainable = differing[layer.path]


def restore_around(
    model: keras.Model, inner: keras.Model, trainable: bool, differing: dict[str, bool]
) -> None:
    """Freezes and thaws the layers of a model, except for an inner model, which stays as it is.

    `trainable` is the model's own, and `differing` is `read_trainability(model, without=inner)`.
    """
    inner_trainable, inner_differing = inner.trainable, read_trainability(inner)
    model.trainable = trainable
    inner.trainable = inner_trainable
    restore_trainability(inner, inner_differing)
    for layer in _layers_with_weights(model, without=inner):
        if layer.path in differing:
            layer.trainable = differing[layer.path]


def _layers_with_weights(
    model: keras.Model, without: keras.Model | None = None
) -> list[keras.layers.Layer]:
    left_out = set() if without is None else {id(layer) for layer in without._flatten_layers()}
    layers = model._flatten_layers(include_self=False)
    return [layer for layer in layers if layer.weights and layer.path and id(layer) not in left_out]
