"""The order in which the rows of a dataset are visited.

An order is a function from the epoch to a permutation of the rows, int (N,). It is a pure function
of (seed, epoch), so that any batch of any epoch can be made at any time.
"""

import functools
import operator

import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.text_lists import NoText


def find_batch(index, num_batches):
    """(the epoch of a batch, its number in the epoch) of an index of a dataset of batches.

    There is no last epoch, so a negative index is a ValueError.
    """
    check_integer("index", index)
    return divmod(operator.index(index), num_batches)


def in_order(num_rows):
    """The order of the data, in every epoch."""
    rows = np.arange(num_rows)
    return lambda epoch: rows


def shuffled(num_rows, seed):
    """A new random order each epoch."""
    return functools.lru_cache(maxsize=2)(
        lambda epoch: np.random.default_rng([seed, epoch]).permutation(num_rows)
    )


def longest_last(lengths):
    """Visits short rows first, in every epoch. This is for evaluation, where any order is right."""
    rows = np.argsort(lengths, kind="stable")
    return lambda epoch: rows


def shuffled_by_length(lengths, batch_size, seed, batches_per_chunk=50):
    """A new random order each epoch, in which the rows of a batch have similar lengths.

    Shuffled rows are cut into chunks of `batches_per_chunk` batches. Each chunk is sorted by
    length, and then the batches are shuffled. So little is computed on padding, and a batch still
    has other rows in each epoch. If the last batch is not full, it holds random rows.
    """
    lengths = np.asarray(lengths)

    @functools.lru_cache(maxsize=2)
    def order(epoch):
        rng = np.random.default_rng([seed, epoch])
        rows = rng.permutation(len(lengths))
        num_full = len(rows) // batch_size * batch_size
        chunk_size = batch_size * batches_per_chunk
        chunks = [rows[i : min(i + chunk_size, num_full)] for i in range(0, num_full, chunk_size)]
        chunks = [chunk[np.argsort(lengths[chunk], kind="stable")] for chunk in chunks]
        full = np.concatenate([rows[:0], *chunks]).reshape(-1, batch_size)
        return np.concatenate([rng.permutation(full).ravel(), rows[num_full:]])

    return order


def shuffled_without_duplicates(columns, batch_size, seed):
    """A new random order each epoch, in which no text of the columns is in two rows of a batch.

    A row that shares a text with a row of its batch waits for a later batch. If in the end all
    rows that are left share texts, they come in batches nevertheless.

    Source: `NoDuplicatesBatchSampler` of sentence-transformers, which makes the last batches
    smaller.
    """
    rows = [
        {text for text in texts if not isinstance(text, NoText)}
        for texts in zip(*columns, strict=True)
    ]

    @functools.lru_cache(maxsize=2)
    def order(epoch):
        waiting = dict.fromkeys(
            np.random.default_rng([seed, epoch]).permutation(len(rows)).tolist()
        )
        visited = []
        while waiting:
            batch, texts = [], set()
            for row in waiting:
                if texts.isdisjoint(rows[row]):
                    batch.append(row)
                    texts |= rows[row]
                    if len(batch) == batch_size:
                        break
            if len(batch) < batch_size:
                batch = list(dict.fromkeys([*batch, *waiting]))[:batch_size]
            for row in batch:
                del waiting[row]
            visited += batch
        return np.array(visited, "int64")

    return order


def shuffled_by_label(labels, rows_per_label, seed):
    """A new random order each epoch, in which rows of a label stand together, labels in turn.

    The rows of a label are shuffled and cut into groups of `rows_per_label`. The groups of each
    label are spread evenly over the epoch, so that labels with as many rows take turns, and a rare
    label is in as many batches as it can be. Groups that are not full come at the end.

    Source: Hermans et al., 2017 (https://arxiv.org/abs/1703.07737), section 2, where a batch has K
    rows of P labels. `GroupByLabelBatchSampler` of sentence-transformers leaves the further rows of
    the most frequent label out.
    """
    labels = np.asarray(labels)
    columns = [np.flatnonzero(labels == label) for label in np.unique(labels)]

    @functools.lru_cache(maxsize=2)
    def order(epoch):
        rng = np.random.default_rng([seed, epoch])
        groups, places, rest = [], [], []
        for rows in map(rng.permutation, columns):
            number = len(rows) // rows_per_label
            full = number * rows_per_label
            groups.append(rows[:full].reshape(-1, rows_per_label))
            # One place in each of as many equal parts of the epoch as the label has groups.
            places.append((np.arange(number) + rng.random(number)) / max(number, 1))
            rest.append(rows[full:])
        turns = np.argsort(np.concatenate(places), kind="stable")
        return np.concatenate([np.concatenate(groups)[turns].ravel(), *rest])

    return order
