"""Reads the losses and the metrics that `compile` of a task takes, for each output of the task."""

from collections.abc import Callable, Mapping
from typing import Any

import keras


def read_losses(task: Any, loss: Any) -> Any:
    """The losses, in the same structure, as `task.read_loss` makes them."""
    return _read_outputs(task.read_loss, loss)


def read_metrics(task: Any, metrics: Any, weighted_metrics: Any) -> tuple[Any, Any]:
    """(metrics, weighted metrics) as `task.read_metric` makes them.

    Where weights say which predictions count, all metrics are weighted metrics.
    """
    if not task.are_tokens:
        return tuple(
            _read_outputs(task.read_metric, given) for given in (metrics, weighted_metrics)
        )
    counted = _read_outputs(lambda *given: task.read_metric(*given, only_counts=True), metrics)
    weighted = _read_outputs(task.read_metric, weighted_metrics)
    if not counted or not weighted:
        return None, counted or weighted
    if not isinstance(counted, Mapping) and not isinstance(weighted, Mapping):
        return None, [*keras.tree.flatten(counted), *keras.tree.flatten(weighted)]
    names = {**_name_outputs(task, counted), **_name_outputs(task, weighted)}
    return None, {
        name: [
            *keras.tree.flatten(counted.get(name, [])),
            *keras.tree.flatten(weighted.get(name, [])),
        ]
        for name in names
    }


def _name_outputs(task, metrics):
    if isinstance(metrics, Mapping):
        return metrics
    raise ValueError(
        f"A {type(task).__name__} has the outputs {', '.join(task.output)}. Pass `metrics` and "
        f"`weighted_metrics` as dicts of the name of an output -> list of metrics, got {metrics!r}."
    )


def _read_outputs(read: Callable[..., Any], given: Any) -> Any:
    """Reads each part of a structure, with the name of its output if the structure is a dict."""
    if isinstance(given, Mapping):
        return {name: _read_parts(read, part, name) for name, part in given.items()}
    return _read_parts(read, given, None)


def _read_parts(read, part, output):
    if part is None:
        return None
    return keras.tree.map_structure(lambda leaf: read(leaf, output), part)
