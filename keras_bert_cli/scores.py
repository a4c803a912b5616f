"""Scores a classifier from the true classes and the predicted classes of rows."""

import numpy as np

from keras_bert_suite.data import score_counts


def count_confusions(label_ids, predicted_ids, num_classes):
    """int (C, C): the number of rows of class i that were predicted as class j.

    >>> count_confusions([0, 0, 1], [0, 1, 1], 2)
    array([[1, 1],
           [0, 1]])
    """
    pairs = np.asarray(label_ids) * num_classes + np.asarray(predicted_ids)
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def score(confusions, label_names):
    """All scores, as values that JSON can hold.

    Args:
        confusions: int (C, C), from `count_confusions`.
        label_names: list of C str.

    Returns:
        dict of `rows`; `accuracy`; `macro_f1`, the mean over the classes; `classes`, a dict of
        label name -> dict of `precision`, `recall`, `f1` (see `score_counts`) and `rows`;
        `label_names`; and `confusion_matrix`, `confusions` as lists.
    """
    found, predicted, true = np.diag(confusions), confusions.sum(axis=0), confusions.sum(axis=1)
    classes = {
        name: {
            **score_counts.score_counts(found[i], predicted[i], true[i]),
            "rows": int(true[i]),
        }
        for i, name in enumerate(label_names)
    }
    return {
        "rows": int(confusions.sum()),
        "accuracy": float(np.trace(confusions) / max(confusions.sum(), 1)),
        "macro_f1": float(np.mean([scores["f1"] for scores in classes.values()])),
        "classes": classes,
        "label_names": list(label_names),
        "confusion_matrix": confusions.tolist(),
    }
