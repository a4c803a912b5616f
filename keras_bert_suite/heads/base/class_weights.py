"""Turns weights of classes into weights of rows."""

import numbers
from collections.abc import Mapping

import numpy as np

from keras_bert_suite.heads.base.label_encoding import check_one_reading
from keras_bert_suite.heads.base.label_tensors import encode_tensor
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def read_class_weights(class_weight, label_names):
    """Reads the argument `class_weight` of `fit`, a dict of label name or class id -> weight.

    >>> read_class_weights({"yes": 3.0}, ["no", "yes"])
    array([1., 3.], dtype=float32)
    """
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be a dict of label or class id -> weight, or 'balanced', got "
            f"{str(class_weight)[:80]}. For weights in the order of the labels, pass "
            "dict(enumerate(class_weight))."
        )
    weights = np.ones(len(label_names), "float32")
    for key, weight in class_weight.items():
        is_id = isinstance(key, numbers.Integral)
        if is_id:
            check_one_reading([key], label_names)
        known = 0 <= key < len(label_names) if is_id else key in label_names
        if not known or not 0 <= weight < float("inf"):
            raise ValueError(
                f"class_weight has {key!r}: {weight!r}, wanted one of the labels "
                f"{list(label_names)} or a class id, and a finite number of at least 0."
            )
        weights[key if is_id else list(label_names).index(key)] = weight
    return weights


def balance_classes(class_ids, label_names):
    """dict of label name -> weight that gives each class the same weight in the loss.

    A class without a row has no weight.

    >>> balance_classes([0, 0, 0, 1], ["no", "yes", "maybe"])
    {'no': 0.6666666666666666, 'yes': 2.0}
    """
    counts = np.bincount(class_ids, minlength=len(label_names)).tolist()
    share = len(class_ids) / max(np.count_nonzero(counts), 1)
    return {name: share / count for name, count in zip(label_names, counts, strict=True) if count}


def balance_label_sets(is_label, label_names):
    """dict of label name -> weight by which its rows weigh as much as all others, of 0/1 (N, C).

    >>> balance_label_sets([[1, 1], [0, 1], [0, 1]], ["rare", "always"])
    {'rare': 2.0, 'always': 0.3333333333333333}
    """
    rows, counts = len(is_label), np.sum(is_label, axis=0).tolist()
    # A label that all rows have needs a weight, too.
    return {
        name: max(rows - count, 1) / count
        for name, count in zip(label_names, counts, strict=True)
        if count
    }


def weight_rows(labels, weights):
    """The weight of each row, which is the weight of its class, float32 (B,).

    Labels are int (B,), or (B, C) one-hot or soft, of which the largest counts; weights (C,). A
    TensorFlow tensor of labels gives a tensor.
    """
    if is_tf_tensor(labels):
        return encode_tensor(lambda array: weight_rows(array, weights), labels, "float32", (None,))
    labels = np.asarray(labels)
    return weights[labels if labels.ndim == 1 else labels.argmax(axis=-1)]
