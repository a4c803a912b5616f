"""Columns of rows: lists, arrays, Series and tensors, in tuples, dicts and DataFrames."""

import numbers
from collections.abc import Mapping

import numpy as np

from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def name_columns(x):
    """Turns a DataFrame into a dict of its columns. Other values are returned as they are.

    Raises:
        ValueError: if the columns come from a tokenizer of transformers.
    """
    if hasattr(x, "iloc") and hasattr(x, "columns"):
        return {str(name): x.iloc[:, place].to_numpy() for place, name in enumerate(x.columns)}
    if isinstance(x, Mapping) and "input_ids" in x:
        raise ValueError(
            f"Got the arrays {', '.join(map(str, x))} of a tokenizer of transformers. Pass the "
            "texts, which the task tokenizes itself; or, with padding=True and "
            'return_tensors="np" in the tokenizer: {"token_ids": x["input_ids"], "segment_ids": '
            'x["token_type_ids"], "padding_mask": x["attention_mask"]}.'
        )
    return dict(x) if isinstance(x, Mapping) and not isinstance(x, dict) else x


def is_tuple_of_columns(part):
    """Whether a part of rows is a tuple of columns, and not a column that is a tuple."""
    return isinstance(part, tuple) and not all(map(np.isscalar, part))


def list_columns(part):
    """list of the columns in tuples, dicts and DataFrames. A tuple of texts or numbers is one."""
    part = name_columns(part)
    if part is None:
        return []
    if isinstance(part, dict) or is_tuple_of_columns(part):
        inner = part.values() if isinstance(part, dict) else part
        return [column for each in inner for column in list_columns(each)]
    return [part]


def check_same_rows(*parts, names=None):
    """Raises a ValueError if columns, in tuples and dicts of any depth, differ in their rows.

    `names` says what each part has, for the error.
    """
    sizes = [[_count_rows(column) for column in list_columns(part)] for part in parts]
    if len({size for part in sizes for size in part}) == 1:
        return
    shown = [" and ".join(map(str, dict.fromkeys(part))) for part in sizes]
    if names is None:
        got = f"{' and '.join(filter(None, shown))} rows"
    else:
        pairs = zip(shown, names, strict=True)
        got = ", ".join(f"{size} {name}" for size, name in pairs if size)
    raise ValueError(
        f"Texts, labels and sample weights must have the same number of rows, got {got}."
    )


def _count_rows(column):
    try:
        return len(column)
    except TypeError as error:
        raise ValueError(
            f"Wanted a column with a value for each row, got {column!r:.80}. Repeat the value for "
            "each row."
        ) from error


def take_rows(columns, entries):
    """Some rows of the arguments `x` or `y` of `fit`.

    Args:
        columns: a column of rows, or a tuple, dict or DataFrame of columns; or None.
        entries: int (K,).

    Returns:
        columns of K rows: a list, or an array for an array; or a tuple or dict of them.
    """
    columns = name_columns(columns)
    if columns is None:
        return None
    if isinstance(columns, dict):
        return {name: take_rows(column, entries) for name, column in columns.items()}
    if is_tuple_of_columns(columns):
        return tuple(take_rows(column, entries) for column in columns)
    if hasattr(columns, "__array__"):
        columns = as_array(columns)[entries]
        return columns.tolist() if holds_texts(columns) else columns
    columns = list(columns)
    return [columns[i] for i in entries]


def holds_texts(column):
    """Whether an array, a tensor, a list or a tuple holds strings."""
    if isinstance(column, (list, tuple)):
        # The first text may be missing.
        return any(isinstance(value, (str, bytes)) for value in column)
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind in "UST" or (
            dtype.kind == "O"
            and any(isinstance(value, (str, bytes)) for value in np.asarray(column).flat)
        )
    return "string" in str(dtype)


def map_arrays(function, columns):
    """Applies `function` to every array of nested tuples and dicts; None stays None."""
    if columns is None:
        return None
    if isinstance(columns, tuple):
        return tuple(map_arrays(function, column) for column in columns)
    if isinstance(columns, dict):
        return {name: map_arrays(function, column) for name, column in columns.items()}
    return function(columns)


def to_array(column):
    """Calls `as_array`, but leaves a TensorFlow tensor as it is, because it may be in a graph."""
    return column if is_tf_tensor(column) else as_array(column)


def leave_tensorflow(columns):
    """Replaces tensors of TensorFlow by arrays, in tuples and dicts of any depth.

    A ragged tensor becomes a list of lists.
    """

    def leave(column):
        if not is_tf_tensor(column):
            return column
        return column.to_list() if hasattr(column, "to_list") else column.numpy()

    return map_arrays(leave, columns)


def as_array(column):
    """Turns a list, a Series or a tensor into an array.

    Strings in a list become objects. Numbers in a column of objects, as pandas has them after a
    row with a missing value was dropped, become an array of numbers.
    """
    if hasattr(column, "detach"):
        column = column.detach().cpu().numpy()
    if isinstance(column, list) and any(isinstance(value, (str, bytes)) for value in column):
        array = np.empty(len(column), dtype=object)
        array[:] = column
        return array
    array = np.asarray(column)
    if array.dtype == object and array.size and all(map(is_number, array.flat)):
        return np.array(array.tolist())
    return array


def is_number(value):
    """Whether a value is a number of Python or of NumPy, or a bool."""
    return isinstance(value, (numbers.Real, np.bool_))
