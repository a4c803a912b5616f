"""Compares the batches that processes read, since each of them reads all batches itself."""

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from keras_bert_suite.replicas.processes import exchange

#: What a process tells the others in place of a digest, when it has no batch any more.
_END = "end"

#: The same before the text of an error with which it has read a batch.
_ERROR = "error "


def compare_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Yields each batch after all processes have read the same batch.

    All processes iterate at the same places. They exchange a digest of each batch, and so they also
    find out at once that one of them has fewer batches.

    Args:
        batches: iterator of nested dicts and tuples of arrays.

    Raises:
        ValueError: in all processes, if one has read another batch, or has no batch any more. If a
            batch cannot be read in one process, its error is raised there.
    """
    for number in itertools.count(1):
        try:
            batch = next(batches, None)
            own = _END if batch is None else digest_batch(batch)
        except Exception as error:
            # The others wait for a digest.
            exchange(_ERROR + f"{type(error).__name__}: {error}"[:500])
            raise
        digests = exchange(own)
        for index, digest in enumerate(digests):
            if digest != digests[0]:
                raise ValueError(_describe_difference(digests, index, number))
        if batch is None:
            return
        yield batch


def digest_batch(batch: Any) -> str:
    """A text that differs if an array of a batch has another dtype, shape or value.

    Args:
        batch: nested dicts and tuples of arrays, or None.
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in keras.tree.flatten(batch):
        if array is not None:
            array = np.ascontiguousarray(array)
            digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _describe_difference(digests: list[str], index: int, number: int) -> str:
    failed = [i for i in (0, index) if digests[i].startswith(_ERROR)]
    if failed:
        return (
            f"Process {failed[0]} could not read batch {number}: "
            f"{digests[failed[0]].removeprefix(_ERROR)}"
        )
    if _END in (digests[0], digests[index]):
        short, other = (0, index) if digests[0] == _END else (index, 0)
        difference = f"process {short} has no batch {number}, but process {other} has one"
    else:
        difference = f"process {index} has another batch {number} than process 0"
    return (
        f"Processes share each batch, but {difference}. Give all processes the same batches in the "
        "same order. Each takes its rows of every batch itself: drop a DistributedSampler, and "
        "shuffle by a common seed (a DataLoader takes a seeded `generator`), or pass a "
        "grain.MapDataset."
    )
