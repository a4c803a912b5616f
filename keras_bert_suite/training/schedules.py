"""Learning rate schedules."""

import math

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import (
    check_below_one,
    check_not_negative,
    check_positive,
    list_arguments,
)


class UpdateSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule over updates of the weights, also if an optimizer counts batches."""

    _batches_per_step = 1

    def count_batches(self, batches_per_step: int) -> None:
        """Makes the schedule expect numbers of batches, and says how many batches a step takes."""
        self._batches_per_step = batches_per_step

    def __call__(self, step: Tensor) -> Tensor:
        if self._batches_per_step > 1:
            step = ops.floor_divide(step, self._batches_per_step)
        return self.find_rate(step)

    def find_rate(self, step: Tensor) -> Tensor:
        """float32 scalar, the learning rate after int `step` updates."""
        raise NotImplementedError


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LinearWarmupDecay(UpdateSchedule):
    """Linear warm-up to the peak, then linear decay to 0.

    As in Google's code, the decay begins at step 0, and the warm-up replaces it while step <
    warmup_steps. So right after the warm-up the rate is peak (1 - warmup_steps / total_steps), and
    not the peak.

    A step is an update of the weights. `AdamW`, `Lamb` and the `fit` of this package's tasks count
    updates, also when each update takes the gradients of several batches. (In the `fit` of a plain
    `keras.Model`, Keras' own optimizers count batches instead.)

    Args:
        peak_learning_rate: float.
        total_steps: int, optimizer steps until the rate is 0. None leaves the length open: the
            `fit` of this package's tasks spreads the schedule over the steps that it will take.
            With `initial_epoch` it goes on with the schedule of the epochs before.
            `train_on_batch` cannot know how many steps follow, so the rate rises over
            `warmup_steps`, if given, and then stays at the peak.
        warmup_steps: int, steps of the warm-up. Defaults to `warmup_ratio` of all steps.
        warmup_ratio: float in [0, 1).

    Raises:
        ValueError: for a negative or infinite number, or what is no number.

    Example:
    >>> schedule = LinearWarmupDecay(1e-4, total_steps=100, warmup_steps=10)
    >>> [float(schedule(step)) for step in (0, 5, 10, 50, 100)]
    [0.0, 5e-05, 9e-05, 5e-05, 0.0]

    Source: google-research/bert, optimization.py.
    """

    def __init__(
        self,
        peak_learning_rate: float,
        total_steps: int | None = None,
        warmup_steps: int | None = None,
        warmup_ratio: float = 0.1,
        name: str = "linear_warmup_decay",
    ) -> None:
        super().__init__()
        check_not_negative("peak_learning_rate", peak_learning_rate)
        if total_steps is not None:
            check_positive("total_steps", total_steps)
        if warmup_steps is not None:
            check_not_negative("warmup_steps", warmup_steps)
        check_below_one(warmup_ratio=warmup_ratio)
        self.peak_learning_rate = peak_learning_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.warmup_ratio = warmup_ratio
        self.name = name
        self._first_step = 0
        self._num_steps: float | None = total_steps

    def set_length(self, first_step: int, num_steps: float) -> None:
        """Lays the schedule over some steps, if `total_steps` is None.

        Args:
            first_step: int.
            num_steps: int, or `math.inf`. With `math.inf` the rate rises over `warmup_steps`, if
                they are given, and then stays at the peak.
        """
        if self.total_steps is None:
            self._first_step, self._num_steps = first_step, num_steps

    @property
    def is_endless(self) -> bool:
        """bool, whether the rate stays at the peak."""
        return self._num_steps == math.inf

    @property
    def has_length(self) -> bool:
        """bool, whether the number of steps is known."""
        return self._num_steps is not None

    def check_length(self) -> float:
        """Returns the number of steps; raises a ValueError if it is not known yet."""
        if self._num_steps is None:
            raise ValueError(
                "This LinearWarmupDecay does not know its length. Give it `total_steps`, or "
                "train through the `fit` of a keras_bert_suite task, which sets it."
            )
        return self._num_steps

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """(peak, first step, number of steps, steps of the rise), the arguments of `rate_at`.

        Raises:
            ValueError: if the number of steps is not known yet.
        """
        num_steps = self.check_length()
        warmup = self.warmup_steps
        if warmup is None:
            warmup = 0 if self.is_endless else int(num_steps * self.warmup_ratio)
        return self.peak_learning_rate, self._first_step, num_steps, warmup

    def find_rate(self, step: Tensor) -> Tensor:
        return self.rate_at(step, *self.numbers)

    @staticmethod
    def rate_at(
        step: Tensor, peak: Tensor, first_step: Tensor, num_steps: Tensor, warmup: Tensor
    ) -> Tensor:
        """float32 scalar, the learning rate. The arguments are the step and `numbers`."""
        step = ops.cast(step, "float32") - first_step
        rise = step / ops.maximum(warmup, 1.0)
        fall = ops.maximum(0.0, 1.0 - step / num_steps)
        return peak * ops.where(step < warmup, rise, fall)

    def get_config(self) -> Config:
        return {name: getattr(self, name) for name in list_arguments(LinearWarmupDecay)}
