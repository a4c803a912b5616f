"""The order in which the rows of a dataset are visited.

An order is a function from the epoch to a permutation of the rows, int (N,). It is a pure function
of (seed, epoch), so that any batch of any epoch can be made at any time.
"""

import functools

import numpy as np

from keras_bert_suite.data.text_lists import NoText


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
