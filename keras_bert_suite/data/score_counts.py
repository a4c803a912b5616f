"""Computes precision, recall and F1 from counts. This module needs only the standard library."""


def check_scored(rows, predictions=None):
    """Raises a ValueError if there are no rows.

    With `predictions`, also if these are not one for each row, or a text stands for a list.
    """
    if any(isinstance(given, str) for given in (rows, predictions)):
        raise ValueError("Wanted lists of rows to score, got a str. Put a text alone into a list.")
    if not len(rows):
        raise ValueError("There are no rows to score. Pass at least one row with its label.")
    if predictions is not None and len(predictions) != len(rows):
        raise ValueError(
            f"Wanted a prediction for each row, got {len(predictions)} predictions for {len(rows)} "
            "rows."
        )


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
