"""Compares what processes that share a call have got: arguments, models and batches."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_suite.replicas.processes import exchange


def check_same(facts: Mapping[str, Any]) -> None:
    """Raises a ValueError in all processes if one has another fact than the first process.

    All of them call it at the same place. `facts` are objects by name that JSON can write, or a
    text can describe.
    """
    own = {name: json.dumps(fact, sort_keys=True, default=str) for name, fact in facts.items()}
    first, *others = exchange(own)
    for index, other in enumerate(others, start=1):
        for name in first:
            if other.get(name) != first[name]:
                raise ValueError(
                    f"Processes share each call, but process {index} has another {name} than "
                    f"process 0: {str(other.get(name))[:100]} instead of {first[name][:100]}. Make "
                    "the same calls with the same arguments and the same data in all processes. "
                    "Each takes its rows of every batch itself: drop a DistributedSampler, and "
                    "shuffle by a common seed (a DataLoader takes a seeded `generator`)."
                )


def compare_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Yields each batch after all processes have read the same batch.

    All processes iterate at the same places. They exchange a digest of each batch, and so they also
    find out at once that one of them has fewer batches.
    """
    for number in itertools.count(1):
        batch = next(batches, None)
        check_same({f"batch {number}": "no batch" if batch is None else digest_batch(batch)})
        if batch is None:
            return
        yield batch


def digest_batch(batch: Any) -> str:
    """A text that differs if an array of a batch has another dtype, shape or value."""
    digest = hashlib.blake2b(digest_size=16)
    for array in keras.tree.flatten(batch):
        if array is not None:
            array = np.ascontiguousarray(array)
            digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
