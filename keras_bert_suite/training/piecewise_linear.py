"""A learning rate that moves on straight lines between given points."""

import itertools
from collections.abc import Mapping, Sequence

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import (
    check_integer,
    check_list,
    check_positive,
    check_share,
)
from keras_bert_suite.training.schedules import UpdateSchedule


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PiecewiseLinear(UpdateSchedule):
    """A learning rate on straight lines between points, as bert4keras' `lr_schedule`.

    It is for a shape that `LinearWarmupDecay` has not, such as a rate that rises, falls, and then
    stays at a tenth of its peak. Steps are updates of the weights, as for `LinearWarmupDecay`.

    Args:
        peak_learning_rate: float.
        points: dict of step -> share of the peak, or pairs. Without a point at step 0 the rate
            begins at 0. After the last point it stays. The largest share is 1.

    Raises:
        ValueError: if there are no points, if a step is no integer from 0 on or stands twice, if a
            share is not from 0 to 1, or if none is 1.

    Example:
    >>> schedule = PiecewiseLinear(1e-4, {10: 1.0, 30: 0.1})
    >>> [round(float(schedule(step)), 6) for step in (0, 5, 10, 20, 30, 99)]
    [0.0, 5e-05, 0.0001, 5.5e-05, 1e-05, 1e-05]

    Source: `piecewise_linear` in bert4keras/backend.py.
    """

    def __init__(
        self,
        peak_learning_rate: float,
        points: Mapping[int, float] | Sequence[tuple[int, float]],
        name: str = "piecewise_linear",
    ) -> None:
        super().__init__()
        check_positive("peak_learning_rate", peak_learning_rate)
        self.peak_learning_rate = peak_learning_rate
        self.points = _read_points(points)
        self.name = name

    def find_rate(self, step: Tensor) -> Tensor:
        step = ops.cast(step, "float32")
        points = self.points if self.points[0][0] == 0 else ((0, 0.0), *self.points)
        share = ops.full_like(step, points[-1][1])
        # From the last line to the first: each takes the steps before its end.
        for (start, low), (end, high) in reversed(list(itertools.pairwise(points))):
            line = low + (step - start) * ((high - low) / (end - start))
            share = ops.where(step < end, line, share)
        return self.peak_learning_rate * share

    def get_config(self) -> Config:
        points = [list(point) for point in self.points]
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "points": points,
            "name": self.name,
        }


def _read_points(
    points: Mapping[int, float] | Sequence[tuple[int, float]],
) -> tuple[tuple[int, float], ...]:
    """tuple of (step, share), in the order of the steps."""
    pairs = list(points.items()) if isinstance(points, Mapping) else points
    check_list("points", pairs, "pairs (step, share), or a dict of step -> share")
    pairs = list(pairs)
    for pair in pairs:
        if not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(
                "points must be a dict of step -> share, such as {1000: 1.0, 5000: 0.1}, or pairs "
                f"of both, got {pair!r} in them."
            )
    for step, share in pairs:
        check_integer("A step of points", step)
        check_share("A share of points", share)
    steps, shares = [int(step) for step, _ in pairs], [float(share) for _, share in pairs]
    if len(set(steps)) < len(steps):
        raise ValueError(f"points must have each step once, got the steps {steps}.")
    if not shares or max(shares) != 1:
        raise ValueError(
            "The largest share of points must be 1, so that peak_learning_rate is the peak, got "
            f"the shares {shares}. Divide the shares by the largest, and multiply the peak by it."
        )
    return tuple(sorted(zip(steps, shares, strict=True)))
