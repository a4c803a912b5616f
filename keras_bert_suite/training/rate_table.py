"""The learning rate of each weight, as a table that a person reads."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras

from keras_bert_suite.training.bert_optimizer import BertOptimizer
from keras_bert_suite.training.schedule_lengths import unwrap_optimizer
from keras_bert_suite.training.weight_rates import find_peak


class WeightRate(NamedTuple):
    """How an optimizer trains a weight.

    Attributes:
        path: str, `variable.path`.
        shape: tuple of int.
        trainable: bool, whether it is trained now.
        factor: float, the factor of the learning rate.
        rate: float, the peak of the learning rate times `factor`, or 0 if the weight is not
            trained. None if the schedule does not name its peak.
        weight_decay: float, or 0 if the weight is not trained.
    """

    path: str
    shape: tuple[int, ...]
    trainable: bool
    factor: float
    rate: float | None
    weight_decay: float


class RateTable(tuple[WeightRate, ...]):
    """`WeightRate` of each weight. Its text is a table with a line for each.

    ```python
    table = task.rates()
    print(table)
    lowest = min(row.rate for row in table if row.trainable)
    ```
    """

    def __str__(self) -> str:
        head = ("weight", "shape", "trainable", "factor", "rate", "weight decay")
        lines = [head, *map(_write_row, self)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [
            [line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines
        ]
        return "\n".join("  ".join(cells) for cells in texts)

    __repr__ = __str__


def _write_row(row: WeightRate) -> tuple[str, ...]:
    rate = "unknown" if row.rate is None else f"{row.rate:.4g}"
    shape = "x".join(map(str, row.shape)) or "scalar"
    trainable = "yes" if row.trainable else "no"
    return row.path, shape, trainable, f"{row.factor:.4g}", rate, f"{row.weight_decay:.4g}"


def list_rates(
    optimizer: Any, weights: Sequence[keras.Variable], trained: Sequence[keras.Variable]
) -> RateTable:
    """The rates of weights.

    Args:
        optimizer: a built optimizer, which may be of Keras.
        weights: list of `keras.Variable`.
        trained: those which the optimizer trains.
    """
    optimizer = unwrap_optimizer(optimizer)
    is_ours = isinstance(optimizer, BertOptimizer)
    peak, trained_ids = find_peak(optimizer), set(map(id, trained))

    def describe(weight: keras.Variable) -> WeightRate:
        factor = optimizer.find_rate_factor(weight.path) if is_ours else 1.0
        rate = None if peak is None else peak * factor
        shape, path = tuple(weight.shape), weight.path
        if id(weight) not in trained_ids:
            return WeightRate(path, shape, False, factor, 0.0, 0.0)
        return WeightRate(path, shape, True, factor, rate, _find_decay(optimizer, weight))

    return RateTable(map(describe, weights))


def _find_decay(optimizer: Any, weight: keras.Variable) -> float:
    if isinstance(optimizer, BertOptimizer):
        return optimizer.decay_of(weight)
    decay = optimizer.weight_decay or 0.0
    return decay if optimizer._use_weight_decay(weight) else 0.0
