"""Finds labels that look wrong, by confident learning. This module needs only NumPy."""

import numpy as np


def find_label_issues(label_ids, probabilities):
    """Finds the rows whose label looks wrong.

    The threshold of a class is the mean probability of the class over the rows with this label. The
    confident class of a row is the most probable of the classes that reach their threshold. A label
    looks wrong if the confident class of its row is another class. A label that is the most
    probable class of its row never looks wrong.

    The probabilities must come from a model that was not trained on these rows.

    Args:
        label_ids: int (N,).
        probabilities: float (N, C).

    Returns:
        bool (N,).

    Source: Northcutt et al., 2021 (https://arxiv.org/abs/1911.00068), section 3.1: the rows off the
    diagonal of the confident joint. The last rule is from cleanlab.
    """
    label_ids, probabilities = np.asarray(label_ids), np.asarray(probabilities, "float64")
    has_label = label_ids[:, None] == np.arange(probabilities.shape[1])
    counts = has_label.sum(axis=0)
    means = (probabilities * has_label).sum(axis=0) / np.maximum(counts, 1)
    thresholds = np.where(counts > 0, means, np.inf)
    # The mean of equal numbers may be rounded up.
    confident = np.where(probabilities >= thresholds - 1e-6, probabilities, -1)
    is_other = (confident.max(axis=1) >= 0) & (confident.argmax(axis=1) != label_ids)
    return is_other & (probabilities.argmax(axis=1) != label_ids)
