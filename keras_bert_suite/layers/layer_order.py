"""The order of layers, which is that of the weights of a model and of an optimizer's moments."""

import keras


def order_layers(model: keras.Model) -> None:
    """Puts the layers of a functional model in the order of its graph, under every backend.

    Under PyTorch, KerasHub's models have that order. Under the other backends, layers come as they
    became attributes of the model, so that the moments in a file of the one would be read as those
    of other weights under the other. Layers outside of the graph come last.
    """
    places = {id(layer): place for place, layer in enumerate(model.layers)}
    model._layers.sort(key=lambda layer: places.get(id(layer), len(places)))
