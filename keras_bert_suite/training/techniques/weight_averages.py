"""Averages of the weights over the steps of a training."""

import math
import numbers
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.training.techniques.technique import Technique


class WeightAverage(Technique):
    """Keeps an average of the weights, with which the model answers. It trains on the weights.

    `evaluate`, `predict` and the validation of a `fit` put the average in the place of the weights,
    and put the weights back. So do `get_weights` and the methods that save, in a callback of a
    `fit`. After a `fit` the average stays in the model, and the next `fit` goes on from the
    weights. Checkpoints of a run and `.keras` files hold both. Presets and exports have the average
    alone.

    `set_weights` begins a new average, and so does `load_weights` from a file without an average.
    `EarlyStopping` so restores the average of its best epoch.

    With gradient accumulation, a step here is a batch.

    A subclass has `find_share`.
    """

    def build(self, model: keras.Model) -> None:
        """Makes the averages.

        Raises:
            ValueError: if weights have 16 bits, which would lose digits in the place of an average.
        """
        self.weights = _list_floats(model)
        for weight in self.weights:
            if keras.backend.standardize_dtype(weight.dtype) != "float32":
                raise ValueError(
                    f"{type(self).__name__} averages weights in float32, and {weight.path} is "
                    f"{weight.dtype}. Build the model with dtype='mixed_bfloat16'."
                )
        self.averages = [keras.Variable(_copy(w), trainable=False) for w in self.weights]
        self.num_steps = keras.Variable(0, dtype="int32", trainable=False, name="num_steps")
        #: 1 while the averages are in the model, and the weights here.
        self.shown = keras.Variable(0, dtype="int32", trainable=False, name="shown")

    def find_share(self, step: Tensor) -> Tensor:
        """The share of the weights in the average after a step: float32, from int32 from 1 on."""
        raise NotImplementedError

    def after_update(self) -> None:
        step = ops.convert_to_tensor(self.num_steps) + 1
        share = self.find_share(step)
        for average, weight in zip(self.averages, self.weights, strict=True):
            old, new = ops.convert_to_tensor(average), ops.convert_to_tensor(weight)
            average.assign(ops.where(share >= 1, new, old + share * (new - old)))
        self.num_steps.assign(step)

    @property
    def is_shown(self) -> bool:
        """Whether the averages are in the model."""
        return bool(int(ops.convert_to_numpy(self.shown)))

    @property
    def has_steps(self) -> bool:
        """Whether there was a step, so that there is an average."""
        return bool(int(ops.convert_to_numpy(self.num_steps)))

    def begin(self) -> None:
        """Forgets the steps, and what the average or the weights were."""
        self.num_steps.assign(0)
        self.shown.assign(0)

    def check_weights(self, model: keras.Model) -> None:
        """Raises a ValueError if the model has other weights than in `build`."""
        if set(map(id, _list_floats(model))) != set(map(id, self.weights)):
            raise ValueError(
                f"{type(self).__name__} has no average of weights that were added since `compile`, "
                "such as by LoRA or `quantize`. Call `compile` again, which begins a new average."
            )

    def exchange(self) -> None:
        """Puts the averages in the place of the weights, or the weights back."""
        for average, weight in zip(self.averages, self.weights, strict=True):
            value = _copy(weight)
            weight.assign(ops.convert_to_tensor(average))
            average.assign(value)
        self.shown.assign(1 - int(self.is_shown))


def _list_floats(model: keras.Model) -> list[keras.Variable]:
    return [weight for weight in model.weights if keras.backend.is_float_dtype(weight.dtype)]


def _copy(weight: keras.Variable) -> Any:
    return ops.copy(ops.stop_gradient(ops.convert_to_tensor(weight)))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class EMA(WeightAverage):
    """The exponential moving average of the weights, with which the model answers.

    After step t it is the sum of (1 - m) m^(t - i) w_i over the steps i, divided by 1 - m^t. So it
    has no part of the weights before the first step. See `WeightAverage`.

    Args:
        momentum: float m, over 0 and below 1. The average is over about 1 / (1 - m) steps, which
            should be a small share of the training: a longer one lags behind the weights.

    Raises:
        ValueError: if `momentum` is not in this range.

    Source: Polyak and Juditsky, 1992; the correction is that of Adam, Kingma and Ba, 2014
    (https://arxiv.org/abs/1412.6980), section 3.
    """

    def __init__(self, momentum: float = 0.999) -> None:
        is_number = isinstance(momentum, numbers.Real)
        if not is_number or not 0 < momentum < 1:
            raise ValueError(f"momentum must be over 0 and below 1, got {momentum!r}.")
        self.momentum = float(momentum)

    def find_share(self, step: Tensor) -> Tensor:
        passed = ops.cast(step, "float32") * math.log(self.momentum)
        # 1 - m^t, without the digits that the difference would lose.
        return (1 - self.momentum) / -ops.expm1(passed)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SWA(WeightAverage):
    """The mean of the weights at every `every`-th step from one step on; see `WeightAverage`.

    Until the first of these steps the average is the weights.

    Args:
        first_step: int, from 1 on, such as the last step of three quarters of the training.
        every: int. Train with a constant rate from `first_step` on, or the weights stay near.

    Raises:
        ValueError: if a number is no integer from 1 on.

    Source: Izmailov et al., 2018 (https://arxiv.org/abs/1803.05407), algorithm 1. There are no
    batch norms here whose statistics would be computed again.
    """

    def __init__(self, first_step: int, every: int = 1) -> None:
        check_integer("first_step", first_step, at_least=1)
        check_integer("every", every, at_least=1)
        self.first_step = first_step
        self.every = every

    def find_share(self, step: Tensor) -> Tensor:
        after = step - self.first_step
        counts = ops.cast(ops.maximum(after, 0) // self.every + 1, "float32")
        is_counted = ops.logical_or(after <= 0, after % self.every == 0)
        return ops.where(is_counted, 1.0 / counts, 0.0)
