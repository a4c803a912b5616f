"""Reads datasets in their order, pass after pass."""

import itertools

import grain
import keras
import numpy as np


class Passes(grain.IterDataset):
    """A Grain dataset that reads a source from its beginning at each `iter`, by calling `begin`."""

    def __init__(self, begin):
        super().__init__()
        self._begin = begin

    def __iter__(self):
        return _PassIterator(self._begin())


class _PassIterator(grain.DatasetIterator):
    def __init__(self, batches):
        super().__init__()
        self._batches = batches

    def __next__(self):
        return next(self._batches)

    def get_state(self):
        raise NotImplementedError("A source that is read in its own order has no place to save.")

    def set_state(self, state):
        raise NotImplementedError("A source that is read in its own order cannot be entered.")


def read_batches(dataset, repeat=False, shuffle=False):
    """Yields the batches of an iterable or of a `keras.utils.PyDataset`, at least one.

    With `repeat` it begins again, without end. With `shuffle` the batches of a `PyDataset` come in
    a fresh order each pass.
    """
    one_pass = _read_py_dataset if isinstance(dataset, keras.utils.PyDataset) else _iterate
    while True:
        number = 0
        for batch in one_pass(dataset, shuffle):
            number += 1
            yield batch
        if not number:
            raise ValueError("The dataset has no batches. Add rows to it.")
        if not repeat:
            return


def _iterate(dataset, shuffle):
    # `yield from` would close a generator of the user, whose next batches a later call may read.
    for batch in dataset:  # noqa: UP028
        yield batch


def _read_py_dataset(dataset, shuffle):
    if dataset.num_batches is None:
        order = itertools.count()
    else:
        order = range(dataset.num_batches)
        order = np.random.permutation(order) if shuffle else order
    dataset.on_epoch_begin()
    for index in order:
        yield dataset[int(index)]
    dataset.on_epoch_end()
