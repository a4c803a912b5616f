"""What `fit`, `evaluate` and `predict` were given, as a dataset of batches."""

import sys

import grain
import keras

from keras_bert_suite.data.row_batches import (
    RowBatches,
    as_array,
    list_columns,
    map_columns,
    text_lengths,
)
from keras_bert_suite.data.row_orders import (
    in_order,
    longest_last,
    shuffled,
    shuffled_by_length,
)

#: Batches tokenized before they are asked for, each on a thread of its own.
READ_AHEAD_BATCHES = 4


def is_dataset(x):
    """Whether `x` brings its own batches: a Grain, `tf.data` or PyTorch dataset, a generator."""
    return not isinstance(x, (list, tuple, dict, str, bytes)) and not hasattr(x, "__array__")


def gather_columns(x, y=None, sample_weight=None):
    """Brings `x`, `y` and `sample_weight` to arrays of equally many rows.

    Returns:
        nested tuples and dicts of arrays, as `RowBatches` takes them.

    Raises:
        ValueError: if the numbers of rows differ, or there are none.
    """
    columns = map_columns(as_array, keras.utils.pack_x_y_sample_weight(x, y, sample_weight))
    sizes = [len(column) for column in list_columns(columns)]
    if len(set(sizes)) != 1 or sizes[0] == 0:
        raise ValueError(
            "Texts, labels and sample weights must have one entry a row and at least one row, "
            f"got {' and '.join(map(str, sizes)) or 'no'} rows."
        )
    return columns


def training_batches(columns, batch_size, shuffle, seed):
    """Batches in a fresh order each epoch, of rows of similar length."""
    num_rows = len(list_columns(columns)[0])
    lengths = text_lengths(_inputs(columns))
    if not shuffle:
        order = in_order(num_rows)
    elif lengths is None:
        order = shuffled(num_rows, seed)
    else:
        order = shuffled_by_length(lengths, batch_size, seed)
    return RowBatches(columns, batch_size, order)


def evaluation_batches(columns, batch_size, by_length=True):
    """Batches of rows of similar length, short ones first; or of rows as they come.

    Returns:
        (`RowBatches`, int array of the rows in the order they are visited).
    """
    lengths = text_lengths(_inputs(columns))
    num_rows = len(list_columns(columns)[0])
    by_length = by_length and lengths is not None
    order = longest_last(lengths) if by_length else in_order(num_rows)
    return RowBatches(columns, batch_size, order), order(0)


def split_rows(columns, fraction):
    """Sets the last rows apart, as Keras' `validation_split` does.

    Returns:
        (columns of the first rows, columns of the last `fraction` of rows).
    """
    num_rows = len(list_columns(columns)[0])
    first = int(num_rows * (1 - fraction))
    if not 0 < first < num_rows:
        raise ValueError(
            f"validation_split={fraction} leaves {first} of {num_rows} rows for training and "
            f"{num_rows - first} for validation; both need at least one."
        )
    return (
        map_columns(lambda column: column[:first], columns),
        map_columns(lambda column: column[first:], columns),
    )


def num_batches(dataset):
    """Batches in one epoch of a dataset, or None if it does not say."""
    if isinstance(dataset, grain.MapDataset):
        return len(dataset) if len(dataset) < sys.maxsize else None
    if hasattr(dataset, "cardinality"):
        size = int(dataset.cardinality())
        return size if size > 0 else None
    return None


def preprocess_batches(dataset, preprocess_samples, total=None, first=0):
    """Maps `preprocess_samples(x, y, sample_weight)` over a Grain dataset of batches.

    Args:
        dataset: Grain dataset; any other kind is returned as it is.
        preprocess_samples: function, run on threads that read ahead.
        total: int, how many batches will be asked for; a `grain.MapDataset` that has fewer is
            repeated. Keras draws all epochs from one iterator when it is told the steps of each,
            and these may be more or less than a pass. None for one pass.
        first: int, how many of these batches to leave out; only for a `grain.MapDataset`. If
            that is all of them, none is.

    Returns:
        `grain.IterDataset`; under the TensorFlow backend a `tf.data.Dataset`.
    """
    if not isinstance(dataset, (grain.MapDataset, grain.IterDataset)):
        return dataset
    one_pass = num_batches(dataset)
    dataset = dataset.map(
        lambda batch: preprocess_samples(*keras.utils.unpack_x_y_sample_weight(batch))
    )
    if isinstance(dataset, grain.MapDataset):
        if one_pass and total is not None and total > one_pass:
            dataset = dataset.repeat(-(-total // one_pass))
        if 0 < first < len(dataset):  # Keras looks at batches even when none is asked for.
            dataset = dataset[first:]
        dataset = dataset.to_iter_dataset(
            grain.ReadOptions(
                num_threads=READ_AHEAD_BATCHES, prefetch_buffer_size=READ_AHEAD_BATCHES
            )
        )
    if keras.config.backend() != "tensorflow":
        return dataset
    from keras_bert_suite.data.tensorflow_input import to_tensorflow_dataset

    return to_tensorflow_dataset(dataset)


def _inputs(columns):
    """The `x` of packed columns."""
    return columns[0] if isinstance(columns, tuple) else columns
