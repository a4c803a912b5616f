"""Reads the losses and the metrics that `compile` of a task takes, for each output of the task."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras

from keras_bert_suite.argument_checks import with_article

#: The arguments of `compile` that are structures of metrics.
METRICS = ("metrics", "weighted_metrics")


def read_losses(task: Any, loss: Any) -> Any:
    """The losses, in the same structure, as `task.read_loss` makes them."""
    return _read_outputs(task, task.read_loss, loss)


def read_metrics(task: Any, metrics: Any, weighted_metrics: Any) -> dict[str, Any]:
    """dict of `metrics` and `weighted_metrics`, as `task.read_metric` makes them.

    One metric is a list of one, as in TensorFlow's Keras 2. Where weights say which predictions
    count, all metrics are weighted metrics.
    """
    metrics, weighted_metrics = _list_one(metrics), _list_one(weighted_metrics)
    weighted = _read_outputs(task, task.read_metric, weighted_metrics)
    if not task.are_tokens:
        unweighted = _read_outputs(task, task.read_metric, metrics)
        return {"metrics": unweighted, "weighted_metrics": weighted}
    read = functools.partial(task.read_metric, only_counts=True)
    counted = _read_outputs(task, read, metrics)
    joined = _join(counted, weighted) if counted and weighted else counted or weighted
    return {"metrics": None, "weighted_metrics": joined}


def _list_one(metrics):
    return metrics if isinstance(metrics, (list, tuple, Mapping, type(None))) else [metrics]


def _join(first, second):
    """The metrics of two structures. Both are dicts if the task has several outputs."""
    if not (isinstance(first, Mapping) and isinstance(second, Mapping)):
        return [*keras.tree.flatten(first), *keras.tree.flatten(second)]
    return {
        name: [*keras.tree.flatten(first.get(name, [])), *keras.tree.flatten(second.get(name, []))]
        for name in {**first, **second}
    }


def _read_outputs(task: Any, read: Callable[..., Any], given: Any) -> Any:
    """Reads each part of a structure, with the name of its output if the structure is a dict."""
    if isinstance(given, Mapping):
        return {name: _read_parts(read, part, name) for name, part in given.items()}
    if given and isinstance(given, (list, tuple)) and len(keras.tree.flatten(task.output)) > 1:
        raise ValueError(
            f"{with_article(task, 'A')} has several outputs. Pass a dict of the name of an output, "
            f"one of {', '.join(task.output)}, got {given!r}."
        )
    return _read_parts(read, given, None)


def _read_parts(read, part, output):
    if part is None:
        return None
    return keras.tree.map_structure(lambda leaf: read(leaf, output), part)
