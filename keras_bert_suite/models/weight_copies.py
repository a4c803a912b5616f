"""Copies the numbers of weights from one model to another."""

from collections.abc import Mapping
from typing import Any

import keras


def copy_weight(new: Any, old: Any) -> None:
    """Gives a weight the numbers of another, or of an array."""
    # JAX would share the array, and a step of one of both models would delete it.
    new.assign(keras.ops.copy(old))


def list_by_path(model: keras.Model) -> dict[str, Any]:
    """dict of the path of a weight -> the weight."""
    return {weight.path: weight for weight in model.weights}


def copy_all(model: keras.Model, weights: Mapping[str, Any]) -> None:
    """Copies a weight, or an array, to each weight of a model, by its path."""
    for weight in model.weights:
        copy_weight(weight, weights[weight.path])


def copy_known(model: keras.Model, weights: Mapping[str, Any]) -> None:
    """Copies arrays, a dict by path, to the weights of a model. Its other weights stay."""
    for weight in model.weights:
        if weight.path in weights:
            copy_weight(weight, weights[weight.path])
