"""Scores a classifier from the true classes and the predicted classes of rows."""

import numpy as np


def count_confusions(label_ids, predicted_ids, num_classes):
    """int (C, C): the number of rows of class i that were predicted as class j.

    >>> count_confusions([0, 0, 1], [0, 1, 1], 2)
    array([[1, 1],
           [0, 1]])
    """
    pairs = np.asarray(label_ids) * num_classes + np.asarray(predicted_ids)
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def score_classes(confusions):
    """Scores of every class.

    Precision is the share of the rows predicted as a class that belong to the class. Recall is the
    share of the rows of a class that were predicted as the class. F1 is their harmonic mean.
    Without such rows the score is 0.

    Args:
        confusions: int (C, C), from `count_confusions`.

    Returns:
        dict of `precision`, `recall` and `f1`, float (C,).
    """
    hits = np.diag(confusions)
    predicted, actual = confusions.sum(axis=0), confusions.sum(axis=1)
    return {
        "precision": hits / np.maximum(predicted, 1),
        "recall": hits / np.maximum(actual, 1),
        "f1": 2 * hits / np.maximum(predicted + actual, 1),
    }


def score(confusions, label_names):
    """All scores, as values that JSON can hold.

    Args:
        confusions: int (C, C), from `count_confusions`.
        label_names: list of C str.

    Returns:
        dict of `rows`; `accuracy`; `macro_f1`, the mean over the classes; `classes`, a dict of
        label name -> dict of `precision`, `recall`, `f1` and `rows`; `label_names`; and
        `confusion_matrix`, `confusions` as lists.
    """
    by_class = score_classes(confusions)
    classes = {
        name: {
            **{kind: float(values[i]) for kind, values in by_class.items()},
            "rows": int(confusions[i].sum()),
        }
        for i, name in enumerate(label_names)
    }
    return {
        "rows": int(confusions.sum()),
        "accuracy": float(np.trace(confusions) / max(confusions.sum(), 1)),
        "macro_f1": float(by_class["f1"].mean()),
        "classes": classes,
        "label_names": list(label_names),
        "confusion_matrix": confusions.tolist(),
    }
