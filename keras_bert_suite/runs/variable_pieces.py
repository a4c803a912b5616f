"""The pieces of variables that several processes of JAX share: cut, and joined again.

A device holds a part of each variable, or all of it. Of equal parts one device is chosen to save
it, so that every number is saved once, and every process saves about as many.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import ml_dtypes  # noqa: F401  NumPy then knows bfloat16.
import numpy as np

from keras_bert_suite.annotations import Arrays
from keras_bert_suite.runs.model_variables import check_finite, named_variables


@dataclasses.dataclass(frozen=True)
class Pieces:
    """Pieces of variables.

    Args:
        arrays: dict of "NAME@FIRST" -> array. FIRST is the place of the first element of the piece
            in its variable, such as "8,0"; it is empty for a scalar.
        shapes: dict of NAME -> list of int, the shape of the whole variable.
    """

    arrays: Arrays
    shapes: Mapping[str, list[int]]


def cut_pieces(model: keras.Model) -> Pieces:
    """Copies the pieces of all variables that this process saves. For JAX alone."""
    # During an epoch Keras' JAX trainer keeps the state outside of the variables.
    model.jax_state_sync()
    arrays, shapes = {}, {}
    for number, (name, variable) in enumerate(named_variables(model).items()):
        value = variable.value
        shapes[name] = list(value.shape)
        for shard in _choose_shards(value, number):
            first = [part.start or 0 for part in shard.index]
            array = np.array(shard.data, order="C")
            if name.startswith("model/"):
                check_finite(array, variable.path)
            arrays[f"{name}@{','.join(map(str, first))}"] = array
    return Pieces(arrays, shapes)


def _choose_shards(value: Any, number: int) -> Iterable[Any]:
    """The shards of a `jax.Array` that this process saves.

    Neighbouring numbers choose other devices among those with equal shards.
    """
    num_shards = len(
        {str(index) for index in value.sharding.devices_indices_map(value.shape).values()}
    )
    num_copies = len(value.sharding.device_set) // num_shards
    return (s for s in value.addressable_shards if s.replica_id == number % num_copies)


def join_pieces(parts: Iterable[Pieces], source: object) -> Arrays:
    """Puts the `Pieces` of all processes together, to whole arrays by name.

    `source` is their path, for the error if a part of a variable is missing.
    """
    arrays: dict[str, np.ndarray] = {}
    missing: dict[str, int] = {}
    for pieces in parts:
        for key, piece in pieces.arrays.items():
            name, _, first = key.rpartition("@")
            if name not in arrays:
                arrays[name] = np.empty(pieces.shapes[name], piece.dtype)
                missing[name] = arrays[name].size
            begins = map(int, first.split(",")) if first else ()
            place = tuple(slice(b, b + n) for b, n in zip(begins, piece.shape, strict=True))
            arrays[name][place] = piece
            missing[name] -= piece.size
    lacking = [name for name, number in missing.items() if number]
    if lacking:
        raise ValueError(f"{source} lacks a part of {lacking[0]}. Use an earlier checkpoint.")
    return arrays
