"""The same rows in every form that `fit`, `evaluate` and `predict` take.

Columns are lists, one entry a row, or arrays, in tuples and dicts of any depth.
"""

import grain
import keras
import numpy as np
import pandas


class Batches(keras.utils.PyDataset):
    """Batches of rows, by index."""

    def __init__(self, columns, batch_size):
        super().__init__()
        self._columns, self._batch_size = columns, batch_size

    def __len__(self):
        return -(-count_rows(self._columns) // self._batch_size)

    def __getitem__(self, index):
        first = index * self._batch_size
        return take_rows(self._columns, slice(first, first + self._batch_size))


def take_rows(columns, rows):
    """Some rows: of an int the row itself, of a slice columns."""
    if isinstance(columns, tuple):
        return tuple(take_rows(column, rows) for column in columns)
    if isinstance(columns, dict):
        return {name: take_rows(column, rows) for name, column in columns.items()}
    return columns[rows]


def count_rows(columns):
    while isinstance(columns, (tuple, dict)):
        columns = columns[0] if isinstance(columns, tuple) else next(iter(columns.values()))
    return len(columns)


def list_rows(columns):
    """The rows one by one, each of the structure of the columns."""
    return [take_rows(columns, i) for i in range(count_rows(columns))]


def as_table(texts):
    columns = texts if isinstance(texts, tuple) else (texts,)
    return pandas.DataFrame(dict(zip(("text_a", "text_b"), columns, strict=False)))


def as_tensorflow_dataset(columns, batch_size):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def as_named_tensorflow_dataset(columns, batch_size):
    """Texts by name, the last one first; packed arrays have names anyway."""
    import tensorflow as tf

    texts, *others = columns
    if not isinstance(texts, dict):
        table = as_table(texts)
        texts = {name: list(table[name]) for name in reversed(table.columns)}
    dataset = tf.data.Dataset.from_tensor_slices((texts, *others)).batch(batch_size)
    return dataset if others else dataset.map(lambda texts: texts)


def as_grain_map(columns, batch_size):
    return grain.MapDataset.source(list_rows(columns)).batch(batch_size)


def as_grain_iter(columns, batch_size):
    rows = grain.MapDataset.source(list_rows(columns))
    return rows.to_iter_dataset().batch(batch_size)


def as_data_loader(columns, batch_size):
    import torch

    return torch.utils.data.DataLoader(list_rows(columns), batch_size)


def as_generator(columns, batch_size):
    batches = Batches(columns, batch_size)
    return (batches[i % len(batches)] for i in range(4 * len(batches)))


def map_columns(function, texts):
    return tuple(map(function, texts)) if isinstance(texts, tuple) else function(texts)


#: Texts in memory: name -> function(texts) to `x`. Texts are a list, or a tuple of two lists.
TEXTS_IN_MEMORY = {
    "list": lambda texts: texts,
    "array": lambda texts: map_columns(np.array, texts),
    "Series": lambda texts: map_columns(pandas.Series, texts),
    "DataFrame": as_table,
    "dict": lambda texts: {name: list(column) for name, column in as_table(texts).items()},
    "DataFrame, other order": lambda texts: as_table(texts).iloc[:, ::-1],
}

#: Packed arrays in memory: name -> function(packed) to `x`.
ARRAYS_IN_MEMORY = {"arrays": lambda packed: packed}

#: Datasets of batches: name -> function(columns, batch_size). Columns are `(x, y)`,
#: `(x, y, sample_weight)` or `(x,)`, for a lone tuple of texts would be read as `(x, y)`.
DATASETS = {
    "tf.data": as_tensorflow_dataset,
    "tf.data of named columns": as_named_tensorflow_dataset,
    "grain.MapDataset": as_grain_map,
    "grain.IterDataset": as_grain_iter,
    "PyDataset": Batches,
    "DataLoader": as_data_loader,
    "generator": as_generator,
}

#: Datasets that do not say how many batches they have.
WITHOUT_LENGTH = ("grain.IterDataset", "generator")
