"""Computes precision, recall and F1 from counts. This module needs only the standard library."""


def score_counts(found, predicted, true):
    """Computes precision, recall and F1.

    >>> score_counts(found=1, predicted=1, true=2)
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666}

    Args:
        found: int, the number of predictions that are right.
        predicted: int, the number of predictions.
        true: int, the number of things that should be found.

    Returns:
        dict of `precision`, `found` / `predicted`; `recall`, `found` / `true`; and `f1`, their
        harmonic mean. Each is a float, and 0 if its divisor is 0.
    """
    return {
        "precision": float(found / max(predicted, 1)),
        "recall": float(found / max(true, 1)),
        "f1": float(2 * found / max(predicted + true, 1)),
    }
