"""The names and the forms of answers, for a line of JSON and for a column of a table.

The command line loads this file where Keras is not imported.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Columns of N values each: lists or arrays by name.
Columns = dict[str, Any]


def name_classes(names: Sequence[str], ids: np.ndarray, probabilities: np.ndarray) -> Columns:
    """Columns of int (N,) and float (N, C): the label, its probability, and those of all labels."""
    ids, probabilities = np.asarray(ids), np.asarray(probabilities)
    return {
        "label": [names[i] for i in ids.tolist()],
        "probability": np.take_along_axis(probabilities, ids[:, None], axis=-1)[:, 0],
        "probabilities": _by_name(names, probabilities),
    }


def name_label_sets(names: Sequence[str], has: np.ndarray, probabilities: np.ndarray) -> Columns:
    """Columns of bool (N, C) and float (N, C): the labels, and the probabilities of all."""
    return {
        "labels": [[names[i] for i in np.flatnonzero(row).tolist()] for row in has],
        "probabilities": _by_name(names, probabilities),
    }


def name_numbers(names: Sequence[str], scores: np.ndarray) -> Columns:
    """A column of float (N, T), the numbers of each row by name."""
    return {"scores": _by_name(names, scores)}


def name_attributes(
    attributes: Mapping[str, Sequence[str]],
    labels: Mapping[str, Sequence[str]],
    probabilities: Mapping[str, np.ndarray],
) -> Columns:
    """A column of the label of each attribute, and its probability.

    Args:
        attributes: dict of the name of an attribute -> its labels.
        labels: dict of the name of an attribute -> N answers.
        probabilities: dict of the name of an attribute -> float (N, its labels).
    """
    parts = {
        name: [
            {"label": label, "probability": float(row[names.index(label)])}
            for label, row in zip(labels[name], probabilities[name], strict=True)
        ]
        for name, names in ((name, list(names)) for name, names in attributes.items())
    }
    rows = zip(*parts.values(), strict=True)
    return {"attributes": [dict(zip(parts, row, strict=True)) for row in rows]}


def _by_name(names, numbers):
    return [dict(zip(names, row, strict=True)) for row in np.asarray(numbers).tolist()]
