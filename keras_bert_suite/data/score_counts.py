"""Computes precision, recall and F1 from counts. This module needs only the standard library."""


def score_counts(found, predicted, true):
    """Precision, recall and F1 from the numbers that are right, predicted, and should be found.

    >>> score_counts(found=1, predicted=1, true=2)
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666}

    Each is 0 if its divisor is 0.
    """
    return {
        "precision": float(found / max(predicted, 1)),
        "recall": float(found / max(true, 1)),
        "f1": float(2 * found / max(predicted + true, 1)),
    }
