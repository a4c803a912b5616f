"""Makes datasets of batches from the arguments of `fit`, `evaluate` and `predict`."""

import collections.abc
import sys

import grain
import keras

from keras_bert_suite.data.passes import Passes, read_batches
from keras_bert_suite.replicas.processes import compare_batches

#: The number of batches that are tokenized ahead, each on a thread.
READ_AHEAD_BATCHES = 4

#: So many batches are endless. Of Grain's datasets that repeat without end, a mix and a part have
#: fewer than `sys.maxsize`.
_ENDLESS = sys.maxsize >> 16


def is_dataset(x):
    """Whether `x` is a dataset of batches, and not rows in memory.

    Datasets are Grain and `tf.data` datasets, `keras.utils.PyDataset`, PyTorch `DataLoader`,
    generators, and other iterables of batches. A collection of strings is rows in memory.
    """
    if isinstance(x, (list, tuple, dict, str, bytes)) or hasattr(x, "__array__"):
        return False
    if isinstance(x, collections.abc.Collection):
        return not isinstance(next(iter(x), None), (str, bytes))
    return True


def list_sources(dataset):
    """Yields a dataset, and for Grain's datasets also their sources."""
    yield dataset
    if isinstance(dataset, (grain.MapDataset, grain.IterDataset)):
        for parent in dataset.parents:
            yield from list_sources(parent)


def count_steps(dataset, steps, name):
    """How many batches are read from a dataset: `steps`, else one pass, int; None if unknown.

    Raises:
        ValueError: if a dataset repeats without end, and there are no `steps`. `name` is the
            argument that sets them.
    """
    if steps:
        return steps
    if _count_batches(dataset) == sys.maxsize:
        raise ValueError(f"The dataset repeats without end. Set {name}, or leave out its repeat().")
    return num_batches(dataset)


def num_batches(dataset):
    """int, the batches in one pass of a dataset; None if it is endless or does not know it.

    Raises:
        ValueError: if there are no batches.
    """
    size = _count_batches(dataset)
    if size == 0:
        raise ValueError("The dataset has no batches. Add rows, or lower its batch size.")
    return None if size == sys.maxsize else size


def _count_batches(dataset):
    """int, `sys.maxsize` if the dataset is endless; None if it does not know the number."""
    if hasattr(dataset, "cardinality"):
        size = int(dataset.cardinality())
        size = {-1: sys.maxsize, -2: None}.get(size, size)
    elif isinstance(dataset, keras.utils.PyDataset):
        size = dataset.num_batches
    else:
        try:
            size = len(dataset)
        except TypeError:
            size = None
    return sys.maxsize if size is not None and size >= _ENDLESS else size


def preprocess_batches(
    dataset,
    function,
    total=None,
    first=0,
    shuffle=False,
    in_graph=True,
    fixed_labels=False,
):
    """Maps a function over the elements of a dataset of batches, once.

    Args:
        dataset: a dataset, see `is_dataset`.
        function: function from an element to a batch. It runs on threads that read ahead if the
            dataset allows it, or in the graph of a `tf.data` dataset.
        total: int, how many batches will be read. A dataset with fewer batches is repeated. If
            Keras is told the number of steps of an epoch, it draws all epochs from one iterator.
            This number may be more or less than a pass. None is one pass.
        first: int, how many batches at the beginning to leave out; only for a `grain.MapDataset`.
            If this would leave out all batches, no batch is left out.
        shuffle: bool, whether the batches of a `PyDataset` come in a fresh order each pass.
        in_graph: bool, whether the batches of a `tf.data` dataset are preprocessed in its graph,
            and not one after the other in Python.
        fixed_labels: bool, whether the labels of all batches differ only in the number of rows.

    Returns:
        a dataset that Keras' own `fit` takes, and that begins again at each `iter`. If `dataset` is
        an iterator, the result is a generator, which cannot begin again. Under the TensorFlow
        backend the result is a `tf.data.Dataset`.
    """
    if in_graph and _is_tensorflow_dataset(dataset):
        from keras_bert_suite.data.tensorflow_input import map_tensorflow_dataset

        return map_tensorflow_dataset(dataset, function)
    dataset = _map_batches(dataset, function, total, first, shuffle)
    if keras.config.backend() != "tensorflow":
        return dataset
    from keras_bert_suite.data.tensorflow_input import to_tensorflow_dataset

    return to_tensorflow_dataset(dataset, fixed_labels)


def compare_dataset(dataset):
    """The same batches, each compared between the processes that share it, as it is read.

    `dataset` comes from `preprocess_batches` under PyTorch and JAX.
    """
    if hasattr(dataset, "__next__"):
        return compare_batches(dataset)
    return Passes(lambda: compare_batches(iter(dataset)))


def replica_batches(dataset, function, total=None, first=0, shuffle=False, fixed_labels=False):
    """As `preprocess_batches`, for TensorFlow's strategies: a `tf.distribute.DistributedDataset`.

    `function` makes of an element a list with a batch for each replica of the strategy in scope.
    """
    from keras_bert_suite.data.tensorflow_input import distribute_shares

    shares = _map_batches(dataset, function, total, first, shuffle)
    return distribute_shares(shares, fixed_labels)


def _map_batches(dataset, function, total, first, shuffle):
    """Maps a function over the elements of any dataset, by threads that read ahead if possible."""
    if isinstance(dataset, grain.MapDataset):
        return (
            choose_batches(dataset, total, first)
            .map(function)
            .to_iter_dataset(
                grain.ReadOptions(
                    num_threads=READ_AHEAD_BATCHES, prefetch_buffer_size=READ_AHEAD_BATCHES
                )
            )
        )
    if hasattr(dataset, "__next__"):
        # Keras takes generators, which must yield tuples, and no other iterators.
        batches = map(function, dataset)
        return (batch if isinstance(batch, (list, tuple)) else (batch,) for batch in batches)
    repeat, source = total is not None, dataset
    return Passes(lambda: map(function, read_batches(source, repeat, shuffle)))


def choose_batches(dataset, total=None, first=0):
    """The batches of a `grain.MapDataset` that a `fit` takes, see `preprocess_batches`."""
    one_pass = num_batches(dataset)
    if one_pass and total is not None and total > one_pass:
        dataset = dataset.repeat(-(-total // one_pass))
    # Keras looks at batches even if it trains on none.
    return dataset[first:] if 0 < first < len(dataset) else dataset


def unpack_batch(batch):
    """The (x, y, sample_weight) of an element of a dataset.

    A list of strings is a batch of texts, as PyTorch's `default_collate` returns it.
    """
    if isinstance(batch, (list, tuple)):
        is_texts = bool(batch) and all(isinstance(text, (str, bytes)) for text in batch)
        batch = (list(batch),) if is_texts else tuple(batch)
    return keras.utils.unpack_x_y_sample_weight(batch)


def unpack_only_labels(batch):
    """As `unpack_batch`, for a model of one output, whose labels and weights need no name.

    Raises:
        ValueError: if the batch has labels for several outputs.
    """
    x, y, sample_weight = unpack_batch(batch)
    if isinstance(y, dict) and len(y) != 1:
        raise ValueError(
            f"This task has one output, and the batches have labels for {', '.join(y)}. Make "
            "batches of single texts, with PretrainingBatches(mode='full_sentences')."
        )
    y, sample_weight = (
        next(iter(part.values())) if isinstance(part, dict) else part for part in (y, sample_weight)
    )
    return x, y, sample_weight


def _is_tensorflow_dataset(dataset):
    return hasattr(dataset, "element_spec") and hasattr(dataset, "cardinality")
