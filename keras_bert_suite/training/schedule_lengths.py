"""Sets the length of a schedule of open length, from the steps that `fit` will take."""

import math

import keras

from keras_bert_suite.training.bert_optimizer import BertOptimizer
from keras_bert_suite.training.schedules import LinearWarmupDecay


def set_schedule_length(model: keras.Model, first_step: int, num_batches: int | None) -> None:
    """Lays a schedule of open length over the steps that a `fit` is about to take.

    `num_batches` is None if it is unknown, which is an error unless the schedule has a length.
    """
    optimizer, schedule = _find_schedule(model)
    if schedule is None:
        return
    batches_per_step = optimizer.gradient_accumulation_steps or 1
    if not isinstance(optimizer, BertOptimizer):
        # Keras' own optimizers pass the number of batches to a schedule.
        schedule.count_batches(batches_per_step)
    if schedule.total_steps is not None:
        return
    if num_batches is None:
        raise ValueError(
            "The length of this dataset is unknown, and so is that of the learning rate "
            "schedule. Pass `steps_per_epoch`, or compile with "
            "LinearWarmupDecay(..., total_steps=...)."
        )
    num_steps = max(num_batches // batches_per_step, 1)
    schedule.set_length(first_step, num_steps)
    _hand_over(model, optimizer)


def open_schedule_end(model: keras.Model) -> None:
    """Keeps a schedule of open length at its peak, because the number of steps is unknown."""
    optimizer, schedule = _find_schedule(model)
    if schedule is None or schedule.total_steps is not None or schedule.is_endless:
        return
    schedule.set_length(int(keras.ops.convert_to_numpy(optimizer.iterations)), math.inf)
    _hand_over(model, optimizer)


def unwrap_optimizer(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """The optimizer that a `LossScaleOptimizer` wraps, or the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _hand_over(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> None:
    """Makes the steps of a model follow the new length of its schedule."""
    if isinstance(optimizer, BertOptimizer) and optimizer.reads_schedule:
        optimizer.read_schedule()
    else:
        # The compiled step holds the old length.
        model.train_function = None


def _find_schedule(
    model: keras.Model,
) -> tuple[keras.optimizers.Optimizer, LinearWarmupDecay | None]:
    """(optimizer, its `LinearWarmupDecay` or None)."""
    optimizer = unwrap_optimizer(model.optimizer)
    schedule = getattr(optimizer, "_learning_rate", None)
    return optimizer, schedule if isinstance(schedule, LinearWarmupDecay) else None
