"""Rows of texts with a label for each of several attributes, some of which may be missing."""

import math
import numbers

import numpy as np

from keras_bert_suite.data.arrays import as_array, name_columns
from keras_bert_suite.data.readers.records import is_missing
from keras_bert_suite.heads.base.label_encoding import encode_labels
from keras_bert_suite.heads.base.labels import NamedLabels
from keras_bert_suite.heads.base.text_data import TextData

#: The id of a missing label.
MISSING = -1


class AttributeLabels(NamedLabels):
    """A class of each attribute for each row, or none.

    `attributes` is a dict of the name of an attribute -> list of the names of its labels.
    """

    have_fixed_shape = True

    def __init__(self, attributes):
        super().__init__([f"{name}={label}" for name, part in attributes.items() for label in part])
        self.attributes = {name: list(labels) for name, labels in attributes.items()}

    def read(self, labels):
        """dict of columns, one for each attribute."""
        if labels is None:
            return None
        columns = name_columns(labels)
        if not isinstance(columns, dict) or not {*columns} & {*self.attributes}:
            raise ValueError(
                "Labels must be a dict or a DataFrame with a column for each attribute, "
                f"{', '.join(self.attributes)}; got {type(labels).__name__}"
                + (f" with {', '.join(map(str, columns))}." if isinstance(columns, dict) else ".")
            )
        wrong = {*columns} ^ {*self.attributes}
        if wrong:
            raise ValueError(
                f"Labels have the columns {', '.join(map(str, columns))}, and the attributes are "
                f"{', '.join(self.attributes)}. Pass a column for each attribute and no others. A "
                "label that is missing is None."
            )
        return {name: columns[name] for name in self.attributes}

    read_batch = read

    def encode(self, labels):
        """int32 (N, A), the class id of each attribute, `MISSING` for a missing label."""
        columns = [self._encode_column(name, as_array(column)) for name, column in labels.items()]
        return np.stack(columns, axis=1)

    def class_weighting(self, class_weight, loss):
        raise ValueError(
            "The labels of several attributes have no common class_weight, so it must be None. "
            "Build the task with `attribute_weights`, or pass `sample_weight`."
        )

    def _encode_column(self, name, column):
        names = self.attributes[name]
        missing = np.array([_is_missing(label, names) for label in column], bool)
        if missing.all():
            return np.full(len(column), MISSING, "int32")
        if missing.any():
            column = column.astype(object)
            has_names = isinstance(column[~missing][0], (str, bytes))
            column[missing] = names[0] if has_names else 0
            column = as_array(column)
        try:
            ids = encode_labels(column, names)
        except ValueError as error:
            # The labels of an attribute are in `attributes`, those of other tasks in `label_names`.
            message = str(error).replace("`label_names`", "`attributes`")
            raise ValueError(f"The attribute {name!r}: {message}") from None
        if ids.ndim != 1:
            raise ValueError(
                f"The attribute {name!r} must have one label for each row, got an array of shape "
                f"{ids.shape}."
            )
        return np.where(missing, np.int32(MISSING), ids)


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
