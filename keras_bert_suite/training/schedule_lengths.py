"""Sets the length of a schedule of open length, from the steps that `fit` will take."""

import math

import keras

from keras_bert_suite.training.bert_optimizer import BertOptimizer
from keras_bert_suite.training.schedules import LinearWarmupDecay, UpdateSchedule


def set_schedule_length(
    model: keras.Model, first_step: int, num_batches: int | None, batches_before: int = 0
) -> str | None:
    """Lays a schedule of open length over the steps that a `fit` is about to take.

    A `fit` with `initial_epoch` goes on with the schedule, if its optimizer has taken steps. The
    schedule then spans the epochs before, too. A new optimizer begins a new schedule: a user who
    compiles anew, say after thawing an encoder, begins another stage of the training.

    Args:
        model: a compiled model.
        first_step: int, the steps that the optimizer has taken.
        num_batches: int, the batches to come. None if their number is unknown, which is an error
            unless the schedule has a length.
        batches_before: int, the batches of the epochs before `initial_epoch`.

    Returns:
        a sentence for the user if the schedule goes on, or None.
    """
    optimizer, schedule = _find_schedule(model)
    batches_per_step = getattr(optimizer, "gradient_accumulation_steps", None) or 1
    given = getattr(optimizer, "_learning_rate", None)
    if isinstance(given, UpdateSchedule) and not isinstance(optimizer, BertOptimizer):
        # Keras' own optimizers pass the number of batches to a schedule.
        given.count_batches(batches_per_step)
    if schedule is None or schedule.total_steps is not None:
        return None
    if num_batches is None:
        raise ValueError(
            "The length of this dataset is unknown, and so is that of the learning rate "
            "schedule. Pass `steps_per_epoch`, or compile with "
            "LinearWarmupDecay(..., total_steps=...)."
        )
    if not first_step:
        batches_before = 0
    steps_before = batches_before // batches_per_step
    num_steps = max((batches_before + num_batches) // batches_per_step, 1)
    schedule.set_length(first_step - steps_before, num_steps)
    _hand_over(model, optimizer)
    if not steps_before or num_batches <= 0:
        return None
    return (
        f"The learning rate schedule goes on after step {steps_before} of {num_steps}, as "
        "`initial_epoch` and `epochs` say. For a new schedule, call `compile` before `fit`. For "
        "one schedule over several calls of `fit`, compile with LinearWarmupDecay(..., "
        "total_steps=...)."
    )


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
