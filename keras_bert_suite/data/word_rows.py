"""Reads rows of words, with a tag on each word, as `Rows`."""

import numpy as np

from keras_bert_suite.data.arrays import as_array, leave_tensorflow, map_arrays, name_columns
from keras_bert_suite.data.rows import Rows, check_weights, read_labels


def read_word_rows(x, y=None, sample_weight=None, check_shapes=None):
    """Turns rows of words, tags and weights into `Rows` of one object array of lists of str.

    Args:
        x: a list, an object array or a pandas Series of N rows, each a list of words or a str; a
            DataFrame or a dict with one such column; or a dict of packed arrays. Eager tensors of
            TensorFlow are taken too.
        y: N lists of tags or label ids, one for each word; for packed arrays an array (N, L); or
            None.
        sample_weight: a number for each row; for packed arrays also an array (N, L); or None.
        check_shapes: function(rows) that raises ValueError if the labels or weights of packed
            arrays do not fit; None is `check_token_shapes`.
    """
    x, y, sample_weight = leave_tensorflow((x, y, sample_weight))
    sample_weight = read_labels(sample_weight)
    map_arrays(check_weights, sample_weight)
    columns = name_columns(x)
    names = None
    if isinstance(columns, dict):
        if not any(_holds_words(column) for column in columns.values()):
            rows = Rows.read(x, y, sample_weight)
            (check_shapes or check_token_shapes)(rows)
            return rows
        names = tuple(columns)
        columns = tuple(columns.values())
    if isinstance(columns, tuple):
        if len(columns) != 1:
            raise ValueError(f"x has {len(columns)} columns, wanted one column of rows of words.")
        (columns,) = columns
    words = read_words(columns)
    tags = None if y is None else read_tags(y)
    for what, column in (("lists of tags", tags), ("sample weights", sample_weight)):
        if column is not None and (np.ndim(column) != 1 or len(column) != len(words)):
            raise ValueError(
                f"Wanted {what} for {len(words)} rows of words, one for each row, got an array of "
                f"shape {np.shape(column)}."
            )
    return Rows((words,), tags, sample_weight, names)


def read_words(column):
    """Reads rows of words as an object array (N,). Each entry is a list of str, or a str.

    Raises:
        ValueError: if a row or a word is of another type, naming the row and the word.
    """
    if isinstance(column, (str, bytes)):
        raise ValueError(
            f"x must be a list of rows, got the string {column[:40]!r}. Put it in a list: [text]."
        )
    rows = as_column(column)
    for number, row in enumerate(rows):
        if isinstance(row, (str, bytes)):
            continue
        if isinstance(row, tuple) or np.ndim(row) == 1:
            rows[number] = row = list(row)
        if not isinstance(row, list) or not all(isinstance(word, (str, bytes)) for word in row):
            raise ValueError(
                f"A row must be a list of words, which are strings, or a text, got "
                f"{str(row)[:80]} ({type(row).__name__}) at row {number}."
            )
    return rows


def check_token_shapes(rows):
    """Checks that packed arrays have a label for each token, and a weight for each token or row."""
    tokens = np.shape(next(iter(rows.inputs.values())))[:2]
    for name, array, wanted in (
        ("labels", rows.labels, [tokens]),
        ("sample weights", rows.weights, [tokens[:1], tokens]),
    ):
        if array is not None and np.shape(array) not in wanted:
            raise ValueError(
                f"The {name} of packed arrays of shape {tokens} must have the shape "
                f"{' or '.join(map(str, wanted))}, got {np.shape(array)}."
            )


def check_span_shapes(rows):
    """Checks the weights of packed arrays with spans, for which `check_span_arrays` has a check."""
    if rows.weights is not None and np.ndim(rows.weights) != 1:
        raise ValueError(
            f"Packed rows with spans have a weight for each row, got {np.shape(rows.weights)}."
        )


def read_tags(y):
    if hasattr(y, "iloc") and np.ndim(y) == 2 and y.shape[1] == 1:  # a DataFrame
        y = y.iloc[:, 0]
    rows = as_column(y)
    for number, row in enumerate(rows):
        if hasattr(row, "__array__"):
            rows[number] = row = as_array(row).tolist()
        if not isinstance(row, (list, tuple)):
            raise ValueError(
                f"Wanted a label for each word, got {str(row)[:40]!r} for all of row {number}."
            )
    return rows


def as_column(column):
    """Makes an object array (N,) of a list or an array. An entry may be of any type."""
    column = list(column)
    rows = np.empty(len(column), dtype=object)
    for number, row in enumerate(column):
        rows[number] = row
    return rows


def _holds_words(column):
    """Whether a column holds texts or lists of words. The first entry that is not empty decides."""
    first = next((row for row in column if np.ndim(row) == 0 or len(row)), None)
    if first is None:
        return isinstance(column, list) or np.ndim(column) < 2  # Packed arrays have two axes.
    if np.ndim(first):
        first = list(first)[0]
    return isinstance(first, (str, bytes))
