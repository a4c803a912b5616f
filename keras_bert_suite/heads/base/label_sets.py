"""Turns sets of labels into a 0/1 matrix. A text may have several labels, or none."""

import functools
import numbers

import numpy as np

from keras_bert_suite.heads.base.label_encoding import check_matrix, find_label, number_labels
from keras_bert_suite.heads.base.label_tensors import encode_tensor
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def read_label_sets(labels):
    """Reads the labels of rows in memory: N lists, tuples, sets or arrays, or an array (N, ...).

    Rows of labels become an object array (N,) of lists. Other arrays stay as they are.
    """
    dtype = getattr(labels, "dtype", None)
    is_column = getattr(dtype, "kind", None) == "O" and len(labels.shape) == 1
    if not isinstance(labels, (list, tuple)) and not is_column:
        return labels
    rows = np.empty(len(labels), dtype=object)
    for number, row in enumerate(labels):
        if hasattr(row, "tolist"):  # An array, or a tensor of PyTorch.
            row = row.tolist()
        rows[number] = list(row) if isinstance(row, (list, tuple, set, frozenset)) else row
    return rows


def read_batch_of_label_sets(labels):
    """As `read_label_sets`, of a batch of a dataset. A list of columns is an error."""
    if isinstance(labels, (list, tuple)) and any(
        isinstance(row, tuple) or hasattr(row, "__array__") for row in labels
    ):
        raise ValueError(
            "The labels of a batch must be a list of lists or an array (B, C), got the first "
            "labels of all rows, then the second, as Grain and PyTorch batch lists. Give each row "
            "an array of C zeros and ones, or return a list of lists for a batch."
        )
    return read_label_sets(labels)


def encode_label_sets(labels, label_names):
    """Turns sets of labels into a 0/1 matrix, float32 (N, C); a tensor for a tensor.

    >>> encode_label_sets(read_label_sets([["b"], [], ["a", "b"]]), ["a", "b"]).tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]

    Args:
        labels: N rows of label names or of label ids: an object array (N,) of lists, an array
            (N, n) of names, or a ragged tensor of TensorFlow (N, None). Or a matrix (N, C) of
            numbers in [0, 1], 1 for each label of the row. An array or a tensor (N, n) of numbers
            is always such a matrix, and never ids. Lists are a matrix if each has C numbers.
        label_names: list of C names, in the order of the labels.
    """
    if is_tf_tensor(labels):
        shape = (None, len(label_names))
        encode = functools.partial(encode_label_sets, label_names=list(label_names))
        return encode_tensor(encode, labels, "float32", shape)
    num_classes = len(label_names)
    if not len(labels):
        return np.zeros((0, num_classes), "float32")
    matrix = _find_matrix(labels, num_classes)
    if matrix is not None:
        return check_matrix(matrix)
    id_of = number_labels(label_names)
    encoded = np.zeros((len(labels), num_classes), "float32")
    for row, names in enumerate(labels):
        if not isinstance(names, (list, np.ndarray)):
            raise ValueError(
                f"The labels of a row must be a list of labels, got {str(names)[:40]!r} "
                f"({type(names).__name__}) at row {row}. No label is an empty list."
            )
        for name in names:
            encoded[row, find_label(name, id_of, row)] = 1.0
    return encoded


def choose_thresholds(labels, probabilities):
    """Chooses for each label the threshold with the highest F1, float64 (C,).

    >>> choose_thresholds(np.array([[0], [1], [1]]), np.array([[0.1], [0.2], [0.8]])).round(2)
    array([0.15])

    A row has a label if its probability is above the threshold, which is in the middle between two
    probabilities, or 0.5 for a label that no row has. Of equals it is the highest.
    """
    thresholds = np.full(labels.shape[1], 0.5)
    for label, (wanted, scores) in enumerate(zip(labels.T > 0.5, probabilities.T, strict=True)):
        if not wanted.any():
            continue
        order = np.argsort(-scores, kind="stable")
        scores = np.append(scores[order].astype("float64"), 0.0)
        f1 = 2 * np.cumsum(wanted[order]) / (np.arange(1, len(order) + 1) + wanted.sum())
        # There is no threshold between equal scores.
        f1 = np.where(scores[:-1] > scores[1:], f1, -1.0)
        last = f1.argmax()
        middle = float(np.float32((scores[last] + scores[last + 1]) / 2))
        # There is no number between two neighbouring numbers of float32.
        thresholds[label] = middle if middle < scores[last] else scores[last + 1]
    return thresholds


def _find_matrix(labels, num_classes):
    """The rows as a matrix, or None if they are lists of names or of ids."""
    if labels.dtype == object and labels.ndim == 1:
        if any(not isinstance(row, list) or len(row) != num_classes for row in labels):
            return None
        labels = np.array(labels.tolist())
    elif labels.dtype == object:  # Such as a DataFrame with columns of several types.
        if not all(isinstance(number, (numbers.Real, np.bool_)) for number in labels.flat):
            return None
        labels = labels.astype("float64")
    if labels.ndim != 2 or labels.dtype.kind not in "biuf":
        return None
    if labels.shape[1] != num_classes:
        raise ValueError(
            f"An array of numbers must have a column for each of the {num_classes} labels, 1 for "
            f"each label of the row, got {labels.shape[1]} columns. Pass ids as lists of lists."
        )
    return labels
