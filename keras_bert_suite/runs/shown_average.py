"""The average of the weights that a technique keeps, in the place of the weights.

A model without such a technique stays as it is.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from keras_bert_suite.training.techniques.weight_averages import WeightAverage


def find_average(model: Any) -> WeightAverage | None:
    """The average that the technique of a model keeps, or None."""
    technique = getattr(model, "technique", None)
    if technique is None:
        return None
    parts = (technique, *technique.parts)
    average = next((part for part in parts if isinstance(part, WeightAverage)), None)
    if average is not None and keras.config.backend() == "jax":
        model.jax_state_sync()  # In a `fit`, the values are in the state of a step.
    return average


@contextlib.contextmanager
def show_average(model: Any) -> Iterator[None]:
    """Puts the average in the place of the weights for the block."""
    if not keep_average(model):
        yield
        return
    try:
        yield
    finally:
        put_weights_back(model)


def keep_average(model: Any) -> bool:
    """Puts the average in the place of the weights. Returns whether the weights were there."""
    average = find_average(model)
    if average is None or average.is_shown or not average.has_steps:
        return False
    average.check_weights(model)
    average.exchange()
    return True


def put_weights_back(model: Any) -> None:
    """Puts the weights in the place of the average, so that a step trains them."""
    average = find_average(model)
    if average is None:
        return
    average.check_weights(model)
    if average.is_shown:
        average.exchange()


def begin_average(model: Any) -> None:
    """Lets the average begin anew, with weights that are set from outside."""
    average = find_average(model)
    if average is not None:
        average.begin()
