"""Reads rows of a prompt and several endings."""

import numpy as np

from keras_bert_suite.data.arrays import (
    check_same_rows,
    holds_texts,
    leave_tensorflow,
    name_columns,
)
from keras_bert_suite.data.rows import Rows, read_labels, read_texts
from keras_bert_suite.data.text_lists import find_texts, spread_lists
from keras_bert_suite.data.word_rows import as_column

_FORMS = (
    "a tuple of two columns, (prompts, endings), in which a row of endings is a list of K texts"
)


def read_choice_rows(x, y=None, sample_weight=None, input_names=("prompt", "endings")):
    """Turns prompts and their endings into `Rows` of K + 1 text columns.

    The columns are the prompts, all first endings, all second endings and so on.

    Args:
        x: `(prompts, endings)`: N texts, and N lists of K texts or an array (N, K); a DataFrame or
            dict of these two columns, by `input_names`; or a dict of packed arrays (N, K, L).
            Eager tensors of TensorFlow are taken too. Where lists differ in length, K is the
            longest, and `NoText` fills the others up.
        y: N integers, the index of the right ending of each row; or None.
        sample_weight: a number for each row, or None.
        input_names: names of the two columns.
    """
    x, y, sample_weight = leave_tensorflow((x, y, sample_weight))
    columns = find_columns(x, input_names, _FORMS)
    if columns is None:
        rows = Rows.read(x, y, sample_weight)
        if rows.labels is None:
            return rows
        num_rows, num_choices = np.shape(next(iter(rows.inputs.values())))[:2]
        sizes = np.full(num_rows, num_choices)
        if "padding_mask" in rows.inputs:
            sizes = (np.asarray(rows.inputs["padding_mask"]) != 0).any(axis=-1).sum(axis=-1)
        return Rows(rows.inputs, _check_choices(rows.labels, sizes), rows.weights)
    prompts = read_texts(columns[0], input_names[0])
    endings = _read_endings(columns[1], prompts, input_names[1])
    rows = Rows.read((prompts, *endings), None, sample_weight)
    if y is None:
        return rows
    sizes = find_texts(endings).sum(axis=0) if endings else np.zeros(len(prompts), int)
    return Rows(rows.inputs, _check_choices(y, sizes), rows.weights)


def find_columns(x, input_names, forms, ranks=(3,)):
    """The columns of rows of a text and a list of texts; None for packed arrays.

    `forms` lists the forms of `x` in a message, and `ranks` are the axes of packed arrays.
    """
    columns = name_columns(x)
    if isinstance(columns, list) and not columns:
        columns = ([], [])
    if isinstance(columns, dict):
        if not set(input_names) <= set(columns):
            if not all(np.ndim(column) in ranks for column in columns.values()):
                found = ", ".join(f"{n} of the shape {np.shape(c)}" for n, c in columns.items())
                raise ValueError(
                    f"Wanted the columns {' and '.join(input_names)}, or packed arrays (N, K, L); "
                    f"got {found}."
                )
            return None
        return tuple(columns[name] for name in input_names)
    if isinstance(columns, list) and _are_columns(columns):
        columns = tuple(columns)
    if not isinstance(columns, tuple) or len(columns) != 2:
        got = f"x of type {type(x).__name__}"
        if isinstance(x, list):
            got = f"a list of {len(x)}. For a list of rows, pass tuple(map(list, zip(*rows)))"
        raise ValueError(f"Wanted {forms}, got {got}.")
    return columns


def _are_columns(x):
    """Whether a list of two has a column of texts and one of lists. Two pairs may look alike."""
    if len(x) != 2 or not holds_texts(x[0]):
        return False
    return getattr(x[1], "ndim", 1) == 2 or not holds_texts(x[1])


def read_collated(x):
    """The columns of a batch as a tuple. PyTorch's `default_collate` makes a list of a tuple."""
    return tuple(x) if isinstance(x, list) else x


def check_collated_lists(x, input_names):
    """Raises a `ValueError` if PyTorch's `default_collate` has made a batch of rows of lists.

    It turns B lists of K texts into K tuples of B texts. Labels would not show the mistake.
    """
    if isinstance(x, dict):
        x = (), x.get(input_names[1])
    texts, lists = x if isinstance(x, (tuple, list)) and len(x) == 2 else (None, None)
    if isinstance(texts, tuple) and isinstance(lists, list):
        if lists and isinstance(lists[0], tuple):
            raise ValueError(
                f"A row of {input_names[1]!r} in a batch must be a list, got a tuple of the first "
                "texts of all rows, as PyTorch's `default_collate` makes it. Pass another "
                "`collate_fn`."
            )


def _check_choices(labels, sizes):
    """The indices of right endings, int32 (N,), of rows with so many endings, int (N,)."""
    labels = read_labels(labels)
    if not labels.size and not len(sizes):
        return labels.astype("int32")  # NumPy makes float64 of an empty list.
    if labels.shape != sizes.shape or labels.dtype.kind not in "iu":
        raise ValueError(
            f"Wanted the index of the right ending for each of {len(sizes)} rows, an integer from "
            f"0, got {labels.dtype} of shape {labels.shape}: {str(labels)[:200]}."
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= sizes))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"Wanted the index of the right ending, an integer from 0 to {sizes[row] - 1}, got "
            f"{labels[row]} at row {row}."
        )
    return labels.astype("int32")


def _read_endings(column, prompts, name):
    """K object arrays (N,) of str: all first endings, all second endings and so on."""
    rows = as_column(column)
    for number, row in enumerate(rows):
        is_list = hasattr(row, "__len__") and not isinstance(row, (str, bytes))
        if not is_list or not len(row):
            raise ValueError(
                f"Row {number} of {name!r} is {str(row)[:40]!r}, wanted a list of its endings."
            )
    check_same_rows(prompts, rows)
    return spread_lists(rows, name)
