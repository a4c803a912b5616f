"""Scores predicted labels, sets of labels and numbers. This module needs only NumPy."""

import numpy as np

from keras_bert_suite.data.score_counts import check_scored, score_counts


def score_classes(label_ids, predicted_ids, label_names):
    """Scores predicted classes.

    Args:
        label_ids, predicted_ids: int (N,), the true and the predicted classes of the rows.
        label_names: list of C names.

    Returns:
        dict of `accuracy`; `macro_f1`, the mean of the F1 of the classes; `matthews`, the
        correlation coefficient, 0 if all rows have one class; and `classes`, see `score_each`.

    Source: Gorodkin, 2004 (https://doi.org/10.1016/j.compbiolchem.2004.09.006), equation 8, for
    the coefficient of more than two classes.
    """
    check_scored(label_ids)
    classes = np.arange(len(label_names))
    wanted = np.asarray(label_ids)[:, None] == classes
    predicted = np.asarray(predicted_ids)[:, None] == classes
    each = score_each(wanted, predicted, label_names)
    return {
        "accuracy": float(np.mean(np.asarray(label_ids) == np.asarray(predicted_ids))),
        "macro_f1": _mean_f1(each),
        "matthews": _correlate_classes(wanted.astype("float64"), predicted.astype("float64")),
        "classes": each,
    }


def score_label_sets(labels, predicted, label_names):
    """Scores predicted sets of labels, bool (N, C).

    Returns:
        dict of `micro_f1`, `micro_precision` and `micro_recall`, over all labels of all rows;
        `macro_f1`, the mean of the F1 of the labels; `exact_match`, the share of rows whose set is
        right; and `classes`, see `score_each`.
    """
    check_scored(labels)
    each = score_each(labels, predicted, label_names)
    micro = score_counts(np.sum(labels & predicted), np.sum(predicted), np.sum(labels))
    return {
        "micro_f1": micro["f1"],
        "micro_precision": micro["precision"],
        "micro_recall": micro["recall"],
        "macro_f1": _mean_f1(each),
        "exact_match": float(np.mean((labels == predicted).all(axis=-1))),
        "classes": each,
    }


def count_confusions(label_ids, predicted_ids, num_classes):
    """int (C, C): the number of rows of class i that were predicted as class j.

    >>> count_confusions([0, 0, 1], [0, 1, 1], 2)
    array([[1, 1],
           [0, 1]])
    """
    pairs = np.asarray(label_ids) * num_classes + np.asarray(predicted_ids)
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def score_each(labels, predicted, label_names):
    """Scores each label by itself, from bool (N, C).

    The result is a dict of label name -> its `precision`, `recall`, `f1` and number of `rows`.
    """
    columns = zip(label_names, np.asarray(labels).T, np.asarray(predicted).T, strict=True)
    return {
        name: {
            **score_counts(np.sum(wanted & guessed), np.sum(guessed), np.sum(wanted)),
            "rows": int(np.sum(wanted)),
        }
        for name, wanted, guessed in columns
    }


def score_numbers(targets, predictions):
    """Scores a regression, float (N, T).

    Returns:
        dict of `pearson` and `spearman`, the means of the correlations of the targets; and
        `mean_squared_error` and `mean_absolute_error`. A correlation is 0 if one side is constant.
    """
    check_scored(targets)
    targets, predictions = (np.asarray(column, "float64") for column in (targets, predictions))
    pairs = list(zip(targets.T, predictions.T, strict=True))
    return {
        "pearson": float(np.mean([correlate(a, b) for a, b in pairs])),
        "spearman": float(np.mean([correlate(rank(a), rank(b)) for a, b in pairs])),
        "mean_squared_error": float(np.mean((targets - predictions) ** 2)),
        "mean_absolute_error": float(np.mean(np.abs(targets - predictions))),
    }


def correlate(a, b):
    """Pearson's correlation of two float columns (N,), 0 if one of them is constant."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:  # The rounded mean of equal numbers may differ from them.
        return 0.0
    a, b = a - np.mean(a), b - np.mean(b)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def rank(column):
    """float64 (N,), the ranks of the numbers of a column (N,). Equal numbers get their mean rank.

    >>> rank(np.array([0.5, 2.0, 0.5])).tolist()
    [1.5, 3.0, 1.5]
    """
    _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def _mean_f1(each):
    return float(np.mean([scores["f1"] for scores in each.values()]))


def _correlate_classes(wanted, predicted):
    """The correlation of two 0/1 matrices (N, C), over all rows and classes."""
    if np.ptp(wanted, axis=0).max() == 0 or np.ptp(predicted, axis=0).max() == 0:
        return 0.0
    wanted, predicted = wanted - wanted.mean(axis=0), predicted - predicted.mean(axis=0)
    return float(np.sum(wanted * predicted) / (np.linalg.norm(wanted) * np.linalg.norm(predicted)))
