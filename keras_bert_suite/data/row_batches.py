"""Rows held in memory, batched for `fit`."""

import grain
import numpy as np


class RowBatches(grain.MapDataset):
    """A Grain dataset of batches of rows, visited in an order of its own each epoch.

    Args:
        columns: nested tuples and dicts of arrays with one entry a row, None allowed,
            such as `(texts, labels)`. Element i of the dataset has the same structure.
        batch_size: int; the last batch of an epoch may be smaller.
        order: function from the epoch to a permutation of the rows, see `row_orders`.
    """

    def __init__(self, columns, batch_size, order):
        super().__init__()
        self._columns = columns
        self._batch_size = batch_size
        self._order = order
        self._num_batches = -(-len(order(0)) // batch_size)

    def __len__(self):
        return self._num_batches

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = divmod(index, self._num_batches)
        rows = self._order(epoch)[batch * self._batch_size : (batch + 1) * self._batch_size]
        return map_columns(lambda column: column[rows], self._columns)


def map_columns(function, columns):
    """Applies `function` to every array of nested tuples and dicts; None stays None."""
    if columns is None:
        return None
    if isinstance(columns, tuple):
        return tuple(map_columns(function, column) for column in columns)
    if isinstance(columns, dict):
        return {name: map_columns(function, column) for name, column in columns.items()}
    return function(columns)


def list_columns(columns):
    """The arrays of nested tuples and dicts, one after the other, without None."""
    found = []
    map_columns(found.append, columns)
    return found


def as_array(column):
    """An array of a list; strings as objects, so that one long text costs its own length only.

    Raises:
        ValueError: if the column is a single string, or a list of lists or tuples.
    """
    if isinstance(column, (str, bytes)):
        raise ValueError(
            f"Texts must come as a list of strings, got the string {column[:40]!r}. "
            "Put it in a list: [text]."
        )
    if isinstance(column, list) and column:
        if isinstance(column[0], (list, tuple)) and any(isinstance(v, str) for v in column[0]):
            raise ValueError(
                "Pairs of texts must come as a tuple of two lists, (first_texts, second_texts), "
                f"got a list of {type(column[0]).__name__}s. Turn it round: tuple(zip(*pairs)), "
                "each part as a list."
            )
        if any(isinstance(value, (str, bytes)) for value in column):
            wrong = [i for i, value in enumerate(column) if not isinstance(value, (str, bytes))]
            if wrong:
                raise ValueError(
                    f"Texts must be strings, got {column[wrong[0]]!r} at row {wrong[0]}. "
                    "Replace missing texts by the empty string."
                )
            array = np.empty(len(column), dtype=object)
            array[:] = column
            return array
    if hasattr(column, "detach"):
        column = column.detach().cpu()
    return np.asarray(column)


def text_lengths(columns):
    """Characters of each row over all string columns, or None if no column holds strings."""
    texts = [c for c in list_columns(columns) if c.dtype.kind in "OUS" and c.ndim == 1]
    if not texts:
        return None
    return sum(np.fromiter(map(len, column), np.int64, len(column)) for column in texts)
