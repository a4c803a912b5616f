"""Weights of the tasks of an ensemble, given or chosen. This module needs no backend."""

import numbers
from collections.abc import Sequence

import numpy as np

from keras_bert_suite.argument_checks import check_integer, check_list


def select_greedily(measure, number, rounds):
    """Chooses weights of tasks by selection with replacement.

    Args:
        measure: function from a list of weights to a score, the higher the better.
        number: int, the tasks.
        rounds: int, how many times a task is added.

    Returns:
        list of floats whose sum is 1: how often each task was added, at the last round with the
        best score.

    Source: Caruana et al., 2004, section 2.
    """
    check_integer("rounds", rounds, at_least=1)
    counts, best, chosen = [0] * number, float("-inf"), None
    for _ in range(rounds):
        trials = []
        for task in range(number):
            trial = [count + (place == task) for place, count in enumerate(counts)]
            score = measure([count / sum(trial) for count in trial])
            # Of equal scores the task that was added least, so that ties go to more tasks.
            trials.append((score, -counts[task], -task, trial))
        score, _, _, counts = max(trials)
        if score >= best:
            best, chosen = score, counts
    if chosen is None:
        raise ValueError(
            "No weights have a score that is a number: all are NaN. Choose another `metric`, or "
            "more held-out rows."
        )
    return [count / sum(chosen) for count in chosen]


def choose_metric(scores, metric=None):
    """A number among scores, the higher the better.

    Args:
        scores: dict, the result of `score`.
        metric: str, or None for "f1" if it is there, else the first number. The sign of an error is
            turned.

    Raises:
        ValueError: if there is no such number.
    """
    known = {name: x for name, x in scores.items() if isinstance(x, numbers.Real)}
    if metric is None:
        metric = "f1" if "f1" in known else next(iter(known))
    if metric not in known:
        raise ValueError(f"metric must be one of {', '.join(known)}, got {metric!r}.")
    return -known[metric] if "error" in metric else known[metric]


def read_weights(weights: Sequence[float], number: int) -> list[float]:
    """Weights of so many tasks, with the sum 1. Raises a ValueError if they are no weights."""
    check_list("weights", weights, f"numbers, one for each of {number} tasks")
    if wrong := [weight for weight in weights if not isinstance(weight, numbers.Real)]:
        raise ValueError(f"weights must be numbers of at least 0, got {wrong[0]!r} in them.")
    given = np.asarray(list(weights), "float64")
    if given.shape != (number,):
        raise ValueError(
            f"weights must have a number for each of {number} tasks, got {list(weights)}."
        )
    if not (np.isfinite(given).all() and given.min() >= 0 and given.sum() > 0):
        raise ValueError(
            "weights must be finite numbers of at least 0, and one of them above 0, got "
            f"{list(weights)}."
        )
    return (given / given.sum()).tolist()
