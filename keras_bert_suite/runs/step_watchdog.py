"""Counts the steps that an optimizer skips, and stops a training that takes no more steps."""

import math

import keras

from keras_bert_suite.training.schedule_lengths import unwrap_optimizer


class StepWatchdog:
    """Counts the steps that an optimizer skips, and stops a training that takes no more steps.

    An optimizer skips a step whose loss or gradient is not finite. After `max_skipped` such steps
    in a row `check` raises. The run began after `first_step` optimizer steps, and `batches` of its
    batches are done. `skipped` counts since the run began, as of the last `count`.
    """

    def __init__(self, model: keras.Model, first_step: int, max_skipped: int, batches: int) -> None:
        self._model = model
        self._optimizer = unwrap_optimizer(model.optimizer)
        self._batches_per_step = self._optimizer.gradient_accumulation_steps or 1
        self._first_step = first_step
        self._max_batches = max_skipped * self._batches_per_step
        self._batches_then, self._steps_then = batches, _read(self._optimizer.iterations)
        self.skipped = 0

    def count(self, batches: int) -> int:
        """Counts the skipped steps of a run of so many batches, and returns the steps taken."""
        # During an epoch Keras' JAX trainer keeps the state outside of the variables.
        if keras.config.backend() == "jax":
            self._model.jax_state_sync()
        # The optimizer does not count the batches of a skipped step.
        counted = _read(self._optimizer._iterations) - self._first_step * self._batches_per_step
        # A loss scale drops a single batch, and the step of this batch then takes one more batch.
        # So the number of dropped batches need not be a multiple of the batches of a step.
        self.skipped = math.ceil((batches - counted) / self._batches_per_step)
        return _read(self._optimizer.iterations)

    def check(self, batches: int) -> None:
        """Raises a FloatingPointError if none of the last `max_skipped` steps was taken.

        Reading a variable of the optimizer waits for the accelerator. So the method reads it only
        once in `max_skipped` steps. A `LossScaleOptimizer` may still lower its scale to 1.
        """
        if batches - self._batches_then < self._max_batches:
            return
        steps = self.count(batches)
        if steps > self._steps_then:
            self._batches_then, self._steps_then = batches, steps
            return
        if _lowers_loss_scale(self._model.optimizer):
            return
        raise FloatingPointError(
            f"No step was taken in batches {self._batches_then} to {batches} of the run: the loss "
            "or a gradient of each was not finite. The weights are as they were before these "
            "batches. Look at these batches, lower the learning rate, or leave float16 for "
            "bfloat16."
        )


def _lowers_loss_scale(optimizer: keras.optimizers.Optimizer) -> bool:
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return False
    return float(keras.ops.convert_to_numpy(optimizer.dynamic_scale)) >= 1


def _read(counter: keras.Variable) -> int:
    """The value of a counter, which may have a copy on each device."""
    return int(keras.ops.convert_to_numpy(counter))
