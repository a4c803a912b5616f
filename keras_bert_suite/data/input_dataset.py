"""What `fit`, `evaluate` and `predict` were given, as a dataset of batches."""

import itertools
import sys

import grain
import keras
import numpy as np

from keras_bert_suite.data.row_batches import RowBatches
from keras_bert_suite.data.row_orders import (
    in_order,
    longest_last,
    shuffled,
    shuffled_by_length,
)

#: Batches tokenized before they are asked for, each on a thread of its own.
READ_AHEAD_BATCHES = 4


def is_dataset(x):
    """Whether `x` brings its own batches.

    That is a Grain or `tf.data` dataset, a `keras.utils.PyDataset`, a PyTorch `DataLoader` or a
    generator of batches.
    """
    return not isinstance(x, (list, tuple, dict, str, bytes)) and not hasattr(x, "__array__")


def training_batches(rows, batch_size, shuffle, seed):
    """Batches of `Rows` in a fresh order each epoch, of rows of similar length."""
    lengths = rows.text_lengths()
    if not shuffle:
        order = in_order(len(rows))
    elif lengths is None:
        order = shuffled(len(rows), seed)
    else:
        order = shuffled_by_length(lengths, batch_size, seed)
    return RowBatches(rows, batch_size, order)


def evaluation_batches(rows, batch_size, by_length=True):
    """Batches of rows of similar length, short ones first; or of rows as they come.

    Returns:
        (`RowBatches`, int array of the rows in the order they are visited).
    """
    lengths = rows.text_lengths()
    by_length = by_length and lengths is not None
    order = longest_last(lengths) if by_length else in_order(len(rows))
    return RowBatches(rows, batch_size, order), order(0)


def num_batches(dataset):
    """Batches in one epoch of a dataset, or None if it does not say."""
    if isinstance(dataset, grain.MapDataset):
        return len(dataset) if len(dataset) < sys.maxsize else None
    if hasattr(dataset, "cardinality"):
        size = int(dataset.cardinality())
        return size if size > 0 else None
    if isinstance(dataset, keras.utils.PyDataset):
        return dataset.num_batches
    try:
        return len(dataset)  # of a DataLoader, unless it reads a stream
    except TypeError:
        return None


def preprocess_batches(dataset, preprocess_samples, total=None, first=0, shuffle=False):
    """Maps `preprocess_samples(x, y, sample_weight)` over a dataset of batches, once.

    Args:
        dataset: what `is_dataset` accepts.
        preprocess_samples: function, run on threads that read ahead where the dataset allows
            it, or in the graph of a `tf.data` dataset.
        total: int, how many batches will be asked for; a dataset that has fewer is repeated.
            Keras draws all epochs from one iterator when it is told the steps of each, and
            these may be more or less than a pass. None for one pass.
        first: int, how many of these batches to leave out; only for a `grain.MapDataset`. None
            is left out if nothing would remain.
        shuffle: bool, whether the batches of a `PyDataset` come in a fresh order each pass.

    Returns:
        a dataset or a generator that Keras' own `fit` takes; under the TensorFlow backend a
        `tf.data.Dataset`.

    """
    if _is_tensorflow_dataset(dataset):
        from keras_bert_suite.data.tensorflow_input import map_tensorflow_dataset

        return map_tensorflow_dataset(dataset, preprocess_samples)

    def preprocess(batch):
        batch = tuple(batch) if isinstance(batch, list) else batch
        return preprocess_samples(*keras.utils.unpack_x_y_sample_weight(batch))

    if isinstance(dataset, grain.MapDataset):
        one_pass = num_batches(dataset)
        dataset = dataset.map(preprocess)
        if one_pass and total is not None and total > one_pass:
            dataset = dataset.repeat(-(-total // one_pass))
        if 0 < first < len(dataset):  # Keras looks at batches even when none is asked for.
            dataset = dataset[first:]
        dataset = dataset.to_iter_dataset(
            grain.ReadOptions(
                num_threads=READ_AHEAD_BATCHES, prefetch_buffer_size=READ_AHEAD_BATCHES
            )
        )
    else:
        batches = map(preprocess, _read_batches(dataset, total is not None, shuffle))
        # Of iterators Keras takes generators alone, and of tuples.
        dataset = (batch if isinstance(batch, tuple) else (batch,) for batch in batches)
    if keras.config.backend() != "tensorflow":
        return dataset
    from keras_bert_suite.data.tensorflow_input import to_tensorflow_dataset

    return to_tensorflow_dataset(dataset)


def _is_tensorflow_dataset(dataset):
    return hasattr(dataset, "element_spec") and hasattr(dataset, "cardinality")


def _read_batches(dataset, repeat, shuffle):
    """Yields the batches of a dataset that is read in its own order."""
    one_pass = _read_py_dataset if isinstance(dataset, keras.utils.PyDataset) else _iterate
    yield from one_pass(dataset, shuffle)
    while repeat and not hasattr(dataset, "__next__"):
        yield from one_pass(dataset, shuffle)


def _iterate(dataset, shuffle):
    yield from dataset


def _read_py_dataset(dataset, shuffle):
    if dataset.num_batches is None:
        order = itertools.count()
    else:
        order = np.random.permutation(len(dataset)) if shuffle else range(len(dataset))
    dataset.on_epoch_begin()
    for index in order:
        yield dataset[int(index)]
    dataset.on_epoch_end()
