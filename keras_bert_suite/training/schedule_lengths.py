"""The length of a schedule that has left it open, from what a training is about to do."""

import math

import keras

from keras_bert_suite.training.bert_optimizer import BertOptimizer
from keras_bert_suite.training.schedules import LinearWarmupDecay

#: Keras' callbacks that assign `optimizer.learning_rate`.
RATE_SETTERS = (keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau)


def lay_schedule(model, first_step, num_batches, callbacks=None):
    """Lays a schedule of open length over the steps that a `fit` is about to take.

    A callback that sets the learning rate takes the rate over from such a schedule: it is the
    peak, and changes only as the callback says.

    Args:
        model: compiled `keras.Model`.
        first_step: int, optimizer steps taken before.
        num_batches: int; `math.inf` keeps the rate at the peak; None if unknown.
        callbacks: what `fit` was given.

    Raises:
        ValueError: if the length is needed and unknown.
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    schedule = getattr(optimizer, "_learning_rate", None)
    if not isinstance(schedule, LinearWarmupDecay):
        return
    batches_per_step = optimizer.gradient_accumulation_steps or 1
    if isinstance(optimizer, BertOptimizer):
        optimizer.lay_schedule(by_callbacks=any(map(sets_rate, list_callbacks(callbacks))))
    else:
        # Keras' own hand a schedule the number of batches.
        schedule.count_batches(batches_per_step)
    if schedule.total_steps is None:
        if num_batches is None:
            raise ValueError(
                "The length of this dataset is unknown, and so is that of the learning rate "
                "schedule. Pass `steps_per_epoch`, or compile with "
                "LinearWarmupDecay(..., total_steps=...)."
            )
        num_steps = num_batches if math.isinf(num_batches) else num_batches // batches_per_step
        schedule.span(first_step, max(num_steps, 1))
        # The compiled step holds the former length.
        model.train_function = None


def sets_rate(callback):
    """Whether a callback assigns the learning rate."""
    return isinstance(callback, RATE_SETTERS)


def list_callbacks(callbacks):
    """What `fit` takes as `callbacks`, as a list."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks.callbacks
    return callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
