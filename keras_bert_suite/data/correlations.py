"""Correlations of two columns of numbers."""

import numpy as np


def correlate(a, b):
    """Pearson's correlation of two columns (N,), 0 if one of them is constant."""
    a, b = (np.asarray(column, "float64") for column in (a, b))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def rank(column):
    """The ranks of the numbers of a column (N,), float64 (N,). Equal numbers share their mean."""
    _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
