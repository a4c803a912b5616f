"""Weights that give every label the same part in a loss."""

import collections


def weigh_labels(labels):
    """dict of label -> weight that gives every label the same weight in the loss.

    >>> weigh_labels(["no", "no", "no", "yes"])
    {'no': 0.6666666666666666, 'yes': 2.0}
    """
    counts = collections.Counter(labels)
    return {label: len(labels) / (len(counts) * count) for label, count in counts.items()}
