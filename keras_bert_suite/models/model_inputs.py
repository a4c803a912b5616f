"""Chooses the arrays of a batch that a model takes."""

from collections.abc import Mapping

import keras

from keras_bert_suite.annotations import Tensor


def select_inputs(model: keras.Model, arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The arrays of a packed batch that a model takes, by name.

    Packers make more arrays than every model takes, such as `segment_ids` and `token_indices`. It
    is a function, and not a method of our backbones, because tasks take KerasHub's, too.

    Args:
        model: functional model whose inputs are a dict, such as a backbone.
        arrays: the arrays of a batch by name.
    """
    return {name: arrays[name] for name in model.input}
