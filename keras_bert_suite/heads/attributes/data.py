"""Rows of texts with labels of several attributes. Some labels may be missing."""

import math
import numbers

import numpy as np

from keras_bert_suite.data.arrays import as_array
from keras_bert_suite.data.readers.records import is_missing
from keras_bert_suite.heads.base.labels import Classes, DictLabels
from keras_bert_suite.heads.base.text_data import TextData

#: The id of a missing label.
MISSING = -1


class KnownClasses(Classes):
    """One class for each row, or none."""

    def encode(self, labels):
        """int32 (N,), the class id, `MISSING` for a missing label."""
        column = as_array(labels)
        missing = np.array([_is_missing(label, self.names) for label in column], bool)
        if missing.all():
            return np.full(len(column), MISSING, "int32")
        if missing.any():
            column = column.astype(object)
            has_names = isinstance(column[~missing][0], (str, bytes))
            column[missing] = self.names[0] if has_names else 0
            column = as_array(column)
        try:
            ids = super().encode(column)
        except ValueError as error:
            # Other tasks have their labels in `label_names`.
            raise ValueError(str(error).replace("`label_names`", "`attributes`")) from None
        if ids.ndim != 1:
            raise ValueError(f"Wanted one label for each row, got an array of shape {ids.shape}.")
        return np.where(missing, np.int32(MISSING), ids)


class AttributeLabels(DictLabels):
    """A class of each attribute for each row, or none.

    `attributes` is a dict of the name of an attribute -> list of the names of its labels.
    """

    noun = "attribute"

    def __init__(self, attributes):
        super().__init__({name: KnownClasses(labels) for name, labels in attributes.items()})

    @property
    def attributes(self):
        """dict of the name of an attribute -> list of the names of its labels."""
        return {name: part.names for name, part in self.parts.items()}

    @property
    def names(self):
        """list of str, "attribute=label"."""
        return [f"{name}={label}" for name, part in self.parts.items() for label in part.names]

    def of_output(self, name):
        return self

    def encode(self, labels):
        """int32 (N, A), the class id of each attribute, `MISSING` for a missing label."""
        return np.stack(list(super().encode(labels).values()), axis=1)


class AttributeData(TextData):
    """Rows of texts, with `AttributeLabels`."""

    takes_graphs = False  # Missing labels are found in Python.

    def check_training(self, rows, batch_size):
        """Raises a ValueError if an attribute has no label in any row."""
        idle = (rows.labels == MISSING).all(axis=0)
        names = [name for name, none in zip(self.labels.attributes, idle, strict=True) if none]
        if names:
            raise ValueError(
                f"The attribute {names[0]!r} has no label in any of {len(rows)} rows. Label "
                "some rows, or leave it out of `attributes`."
            )


def check_attributes(attributes, weights):
    """Checks the arguments `attributes` and `attribute_weights` of a task."""
    if not hasattr(attributes, "items") or not attributes:
        raise ValueError(
            "attributes must be a dict of the name of an attribute -> list of its labels, got "
            f"{str(attributes)[:80]}."
        )
    for name, labels in attributes.items():
        is_list = not isinstance(labels, str) and all(isinstance(label, str) for label in labels)
        if not is_list or len({*labels}) != len(labels) or len(labels) < 2:
            raise ValueError(
                f"The attribute {name!r} needs a list of 2 or more different labels, strings, got "
                f"{str(labels)[:80]}."
            )
        if f"{name}_probabilities" in attributes:
            raise ValueError(
                f"The attribute '{name}_probabilities' has the name of an output of {name!r} in an "
                "export. Choose another."
            )
    for name, weight in (weights or {}).items():
        is_weight = isinstance(weight, numbers.Real) and 0 <= weight < math.inf
        if name not in attributes or not is_weight:
            raise ValueError(
                f"attribute_weights are numbers of at least 0 for {', '.join(attributes)}, got "
                f"{name!r}: {weight!r}."
            )


def _is_missing(label, names):
    is_empty = isinstance(label, (str, bytes)) and len(label) == 0
    return is_missing(label) or is_empty and "" not in names
