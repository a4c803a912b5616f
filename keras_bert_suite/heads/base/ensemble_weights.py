"""Weights of the tasks of an ensemble, by greedy selection. This module needs no backend."""

import numbers

from keras_bert_suite.argument_checks import check_integer


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
