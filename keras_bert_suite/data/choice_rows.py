"""Reads rows of a prompt and several endings."""

import numpy as np

from keras_bert_suite.data.rows import Rows, leave_tensorflow, name_columns, read_labels, read_texts
from keras_bert_suite.data.word_rows import as_column

_FORMS = (
    "a tuple of two columns, (prompts, endings), in which a row of endings is a list of K texts"
)


def read_choice_rows(x, y=None, sample_weight=None, input_names=("prompt", "endings")):
    """Turns prompts and their endings into columns with the same number of rows.

    Args:
        x: `(prompts, endings)`: N texts, and N lists of K texts or an array (N, K); a DataFrame or
            dict of these two columns, by `input_names`; or a dict of packed arrays (N, K, L).
            Eager tensors of TensorFlow are taken too.
        y: N integers, the index of the right ending of each row; or None.
        sample_weight: a number for each row, or None.
        input_names: names of the two columns.

    Returns:
        `Rows`. Its `inputs` are a tuple of K + 1 text columns: the prompts, all first endings, all
        second endings and so on. Its `labels` are int32 (N,).

    Raises:
        ValueError: if `x` has another form, the rows have different numbers of endings, or a label
            is not the index of an ending, naming the row.
    """
    x, y, sample_weight = leave_tensorflow((x, y, sample_weight))
    columns = name_columns(x)
    if isinstance(columns, list) and not columns:
        columns = ([], [])
    if isinstance(columns, dict):
        if not set(input_names) <= set(columns):
            if set(input_names) & set(columns) or not _are_arrays(columns):
                raise ValueError(
                    f"The columns are named {', '.join(map(str, columns))}, wanted "
                    f"{' and '.join(input_names)}. Rename the columns, or pass {_FORMS}."
                )
            return _check_packed_rows(Rows.read(x, y, sample_weight))
        columns = tuple(columns[name] for name in input_names)
    if not isinstance(columns, (tuple, list)) or len(columns) != 2:
        raise ValueError(f"Wanted {_FORMS}, got x of type {type(x).__name__}.")
    prompts = read_texts(columns[0], input_names[0])
    endings = _read_endings(columns[1], len(prompts), input_names[1])
    rows = Rows.read((prompts, *endings), None, sample_weight)
    if y is None:
        return rows
    return Rows(rows.inputs, _check_choices(y, len(prompts), len(endings)), rows.weights)


def check_collated_endings(x, input_names):
    """Raises a `ValueError` if PyTorch's `default_collate` has made a batch of rows of endings.

    It turns B lists of K endings into K tuples of B endings. Labels would not show the mistake.
    """
    if isinstance(x, dict):
        prompts, endings = (), x.get(input_names[1])
    elif isinstance(x, (tuple, list)) and len(x) == 2:
        prompts, endings = x
    else:
        return
    if isinstance(prompts, tuple) and isinstance(endings, list):
        if endings and isinstance(endings[0], tuple):
            raise ValueError(
                "A row of endings in a batch must be a list, got a tuple, as `default_collate` of "
                "PyTorch makes it of the first endings of all rows. Pass the DataLoader a "
                "`collate_fn` that returns a list of prompts and a list of lists of endings."
            )


def _check_choices(labels, num_rows, num_choices):
    """The indices of right endings, int32 (N,)."""
    labels = read_labels(labels)
    if not labels.size and not num_rows:
        return labels.astype("int32")  # NumPy makes float64 of an empty list.
    if labels.shape != (num_rows,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"Wanted the index of the right ending for each of {num_rows} rows, integers "
            f"({num_rows},), got {labels.dtype} of shape {labels.shape}."
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= num_choices))
    if len(wrong):
        raise ValueError(
            f"The label of row {wrong[0]} is {labels[wrong[0]]}, wanted the index of its right "
            f"ending, from 0 to {num_choices - 1}."
        )
    return labels.astype("int32")


def _read_endings(column, num_rows, name):
    """K object arrays (N,) of str: all first endings, all second endings and so on."""
    rows = as_column(column)
    for number, row in enumerate(rows):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
            raise ValueError(
                f"Row {number} of {name!r} is {str(row)[:40]!r}, wanted a list of its endings."
            )
        if len(row) != len(rows[0]) or not len(row):
            raise ValueError(
                f"Row {number} of {name!r} has {len(row)} endings, and row 0 has {len(rows[0])}. "
                "Give all rows the same number of endings, at least 1."
            )
    if len(rows) != num_rows:
        raise ValueError(
            f"Wanted a list of endings for each prompt, got {len(rows)} lists for {num_rows} "
            "prompts."
        )
    places = zip(*rows, strict=True) if len(rows) else []
    return [read_texts(list(place), name) for place in places]


def _check_packed_rows(rows):
    array = next(iter(rows.inputs.values()))
    if np.ndim(array) != 3:
        raise ValueError(
            f"Packed arrays of choices must have the shape (N, K, L), got {np.shape(array)}."
        )
    if rows.labels is None:
        return rows
    labels = _check_choices(rows.labels, *np.shape(array)[:2])
    return Rows(rows.inputs, labels, rows.weights)


def _are_arrays(columns):
    return all(np.ndim(column) == 3 for column in columns.values())
