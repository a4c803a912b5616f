"""Reads the losses of Keras that a user passes to `compile` of a task."""

import functools
import inspect
from typing import Any

import keras

from keras_bert_suite.training.losses import OneHotLoss


def read_loss(loss: Any, from_logits: bool) -> Any:
    """Makes a loss object from a loss of Keras that is given by its name, class or function.

    For a name, Keras itself would always assume that the outputs are probabilities.

    Args:
        loss: a loss, as `compile` takes it.
        from_logits: bool, whether the outputs are logits, and not probabilities.

    Returns:
        `keras.losses.Loss` for losses of Keras with an argument `from_logits`; other losses as they
        are.

    Raises:
        ValueError: if the loss takes logits and the outputs are probabilities, or the reverse.
    """
    if isinstance(loss, str) and loss.lower() in ("crossentropy", "ce"):
        raise ValueError(
            f"The loss {loss!r} does not say which cross-entropy. Leave `loss` out to get the loss "
            "of the task, or pass an object, such as "
            f"keras.losses.CategoricalCrossentropy(from_logits={from_logits})."
        )
    kind = _find_class(loss)
    if kind is not None and "from_logits" in inspect.signature(kind).parameters:
        loss = kind(from_logits=from_logits)
    takes_logits = getattr(loss, "from_logits", None)
    if inspect.isroutine(loss) or isinstance(loss, functools.partial):
        argument = inspect.signature(loss).parameters.get("from_logits")
        takes_logits = None if argument is None else argument.default
    if takes_logits is not None and bool(takes_logits) != from_logits:
        name = getattr(loss, "name", None) or getattr(loss, "__name__", type(loss).__name__)
        raise ValueError(
            f"The outputs are {'logits' if from_logits else 'probabilities'}, got the loss {name} "
            f"with from_logits={takes_logits}. Build the loss with from_logits={from_logits}."
        )
    return loss


def is_loss_of_keras(loss: Any) -> bool:
    """Whether a loss is a loss of Keras, as an object or by its name, class or function."""
    kind = _find_class(loss) or type(loss)
    return kind in vars(keras.losses).values()


def take_class_ids(loss: Any) -> Any:
    """Wraps losses of Keras that take one-hot labels, so that they also take class ids."""
    # These losses smooth labels, or are focal.
    one_hot = (keras.losses.CategoricalCrossentropy, keras.losses.CategoricalFocalCrossentropy)
    return OneHotLoss(loss) if isinstance(loss, one_hot) else loss


def _find_class(loss: Any) -> type | None:
    """The class of a loss that is given by its name, class or function; None for other losses."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
        if isinstance(loss, keras.losses.Loss):
            return type(loss)
    if inspect.isclass(loss):
        return loss
    name = getattr(loss, "__name__", "")
    if getattr(keras.losses, name, None) is not loss:
        return None
    # `binary_crossentropy` is the function of `BinaryCrossentropy`.
    return getattr(keras.losses, "".join(part.capitalize() for part in name.split("_")), None)
