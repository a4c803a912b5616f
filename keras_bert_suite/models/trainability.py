"""Which layers of a model are frozen, as a part of its configuration.

Keras saves `trainable` of a model and not of the layers in it. Under PyTorch it does not hand the
model's own down to a KerasHub backbone that is being built.
"""


def read_trainability(model):
    """Finds the layers whose `trainable` is not that of the layer around them.

    Args:
        model: built `keras.Model`.

    Returns:
        dict of layer path -> bool, as JSON has it; empty if `model.trainable` holds for all.
    """
    known, differing = {"": model.trainable}, {}
    for layer in _layers_with_weights(model):
        around = max((p for p in known if layer.path.startswith(p)), key=len)
        if layer.trainable != known[around]:
            differing[layer.path] = layer.trainable
        known[f"{layer.path}/"] = layer.trainable
    return differing


def restore_trainability(model, differing):
    """Freezes and thaws layers as `read_trainability` has found them.

    Args:
        model: built `keras.Model`, whose own `trainable` is handed down to all others.
        differing: dict of layer path -> bool.
    """
    model.trainable = model.trainable
    # Outer layers come before those within them, to which they hand theirs down.
    for layer in _layers_with_weights(model):
        if layer.path in differing:
            layer.trainable = differing[layer.path]


def _layers_with_weights(model):
    layers = model._flatten_layers(include_self=False)
    return [layer for layer in layers if layer.weights and layer.path]
