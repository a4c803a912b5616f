"""Reads the losses of Keras that a user passes to `compile` of a task."""

import functools
import inspect
from typing import Any

import keras

from keras_bert_suite.training.keras_forms import (
    NEED_TWO_NUMBERS,
    TAKE_SCORES,
    find_compared,
    name_kind,
)
from keras_bert_suite.training.losses import ClassCrossentropy, find_from_logits
from keras_bert_suite.training.output_forms import OutputForm
from keras_bert_suite.training.wrapped_losses import (
    ClassIdLoss,
    ElementwiseLoss,
    LabelwiseLoss,
    OneHotLoss,
    PredictionMean,
    WrappedLoss,
)

#: The losses of each kind of outputs, see `COMPARED`.
_LOSSES = {
    "classes": ("ids", "rows", "overlaps", "binary", "distances", "counts"),
    "label sets": ("binary", "distances", "counts", "overlaps"),
    "numbers": ("binary", "distances", "numbers"),
}

_ADVICE = {
    "classes": "'sparse_categorical_crossentropy', 'categorical_focal_crossentropy', "
    "'categorical_hinge' or 'kl_divergence'",
    "label sets": "'binary_crossentropy', 'binary_focal_crossentropy' or 'mean_squared_error'",
    "numbers": "'mean_squared_error', 'mean_absolute_error' or 'huber'",
}


def read_loss(loss: Any, form: OutputForm) -> Any:
    """Makes a loss fit the labels and the outputs of a task.

    A loss of Keras that is given by its name, class or function takes logits if the outputs are
    logits. For a name, Keras itself would always assume that they are probabilities. A loss of
    Keras without an argument `from_logits` gets probabilities of classes and of label sets; hinge
    losses have their border at 0 and take logits.

    Args:
        loss: a loss, as `compile` takes it.
        form: the outputs and labels that it gets.

    Returns:
        `keras.losses.Loss`, or a loss of the user as it is. With `form.are_tokens` the loss is
        the mean over the predictions that count.

    Raises:
        ValueError: if the loss takes logits and the outputs are probabilities, or the reverse; or
            if it is for other labels.
    """
    if loss is None:
        return None
    if isinstance(loss, str) and loss.lower() in ("crossentropy", "ce"):
        raise ValueError(
            f"The loss {loss!r} does not say which cross-entropy. Leave `loss` out to get the loss "
            "of the task, or pass an object, such as "
            f"keras.losses.CategoricalCrossentropy(from_logits={form.from_logits})."
        )
    loss, name = _build(loss, form.from_logits)
    _check_logits(loss, form.from_logits)
    if isinstance(loss, LabelwiseLoss) and loss.activation is None:
        loss = LabelwiseLoss(loss.loss, loss.name, _choose_activation(loss.loss, form))
    elif name is not None and form.kind in _LOSSES:
        loss = _fit_labels(loss, name, form)
    if form.are_tokens and _is_mean_of_all(loss):
        loss = PredictionMean(loss)
    return loss


def is_loss_of_keras(loss: Any) -> bool:
    """Whether a loss is a loss of Keras, as an object or by its name, class or function."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    kind = loss if inspect.isclass(loss) else type(loss)
    return kind in vars(keras.losses).values() or name_kind(loss) is not None


def _build(loss: Any, from_logits: bool) -> tuple[Any, str | None]:
    """(the object of a loss, its name in `COMPARED`); (the loss as it is, None) of a user's own."""
    given, arguments = loss, {}
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    elif isinstance(loss, functools.partial) and not loss.args:
        loss, arguments = loss.func, loss.keywords
    name = name_kind(loss)
    if name is None or isinstance(given, keras.losses.Loss):
        return given, name
    kind = loss if inspect.isclass(loss) else getattr(keras.losses, name)
    if "from_logits" in inspect.signature(kind).parameters:
        arguments = {"from_logits": from_logits, **arguments}
    return kind(**arguments), name


def _check_logits(loss: Any, from_logits: bool) -> None:
    takes_logits = find_from_logits(loss)
    if inspect.isroutine(loss) or isinstance(loss, functools.partial):
        argument = inspect.signature(loss).parameters.get("from_logits")
        takes_logits = None if argument is None else argument.default
    if takes_logits is not None and bool(takes_logits) != from_logits:
        name = getattr(loss, "name", None) or getattr(loss, "__name__", type(loss).__name__)
        raise ValueError(
            f"The outputs are {'logits' if from_logits else 'probabilities'}, got the loss {name} "
            f"with from_logits={takes_logits}. Build the loss with from_logits={from_logits}."
        )


def _fit_labels(loss: Any, name: str, form: OutputForm) -> Any:
    """A loss of Keras that takes the labels and the outputs of a form."""
    compared = find_compared(name)
    # Classes that are places, and tags, have class ids alone. Padding is no overlap.
    only_ids = form.kind == "classes" and (form.size is None or form.are_tokens)
    if (
        compared not in _LOSSES[form.kind]
        or (only_ids and compared not in ("ids", "rows"))
        or (compared == "overlaps" and form.are_tokens)
        or (name in NEED_TWO_NUMBERS and form.size == 1)
    ):
        raise ValueError(
            f"The loss {loss.name} is not for {form.name_labels()}. Leave `loss` out to get the "
            f"loss of the task, or pass {_ADVICE[form.kind]}."
        )
    activation = _choose_activation(loss, form)
    if name == "SparseCategoricalCrossentropy":
        if only_ids:
            return loss
        return ClassCrossentropy.from_config(loss.get_config())
    if compared == "ids":
        return ClassIdLoss(loss, activation=activation)
    if form.kind == "classes" and compared in ("rows", "overlaps"):
        return OneHotLoss(loss, activation=activation)
    if form.kind == "label sets" and form.are_tokens:
        return LabelwiseLoss(loss, activation=activation)
    if form.kind == "classes" or activation is not None:
        return ElementwiseLoss(loss, activation=activation)
    return loss


def _choose_activation(loss: Any, form: OutputForm) -> str | None:
    """The function that makes probabilities of the outputs for a loss of Keras, or None."""
    name = name_kind(loss)
    takes_logits = find_from_logits(loss) is not None
    return None if name is None or name in TAKE_SCORES or takes_logits else form.activation


def _is_mean_of_all(loss: Any) -> bool:
    """Whether Keras would divide a loss by the number of all predictions."""
    if not isinstance(loss, keras.losses.Loss):
        return True
    if not isinstance(loss, WrappedLoss) and type(loss).__call__ is not keras.losses.Loss.__call__:
        return False  # It takes the mean itself.
    return loss.reduction in ("sum_over_batch_size", "mean")
