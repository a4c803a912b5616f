"""Counts how often a classifier takes one class for another."""

import numpy as np


def count_confusions(label_ids, predicted_ids, num_classes):
    """int (C, C): the number of rows of class i that were predicted as class j.

    >>> count_confusions([0, 0, 1], [0, 1, 1], 2)
    array([[1, 1],
           [0, 1]])
    """
    pairs = np.asarray(label_ids) * num_classes + np.asarray(predicted_ids)
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)
