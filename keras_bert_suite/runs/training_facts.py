"""Tells two trainings apart that would share a folder of checkpoints."""

import hashlib
from typing import Any

import keras
import numpy as np

from keras_bert_suite.data.rows import Rows
from keras_bert_suite.runs.batches import Batches, RowBatches


def describe_training(model: keras.Model, training: Batches, shuffle: bool) -> dict[str, Any]:
    """The facts that a resumed training must share: dict of name -> value that JSON can hold.

    Learning rates and the number of epochs may change. Weights differ from start to start. The
    batches of a user's dataset are not compared: they may be drawn anew at each start.
    """
    dataset, technique = training.dataset, getattr(model, "technique", None)
    facts = {
        "task": type(model).__name__,
        "loss": str(keras.tree.map_structure(_name, model.loss)),
        "optimizer": _name(getattr(model.optimizer, "inner_optimizer", model.optimizer)),
        "technique": _name(technique),
        **({} if technique is None else technique.facts),
        "shuffle": shuffle,
        "backend": keras.config.backend(),
    }
    if isinstance(dataset, RowBatches):
        rows = dataset.rows
        size = min(dataset.batch_size, len(rows))
        return {**facts, "batch size": size, "data": describe_rows(rows)}
    return facts


def describe_rows(rows: Rows) -> str:
    """How many rows they are, and a digest that differs if one of their values does."""
    digest = _digest(keras.tree.flatten((rows.inputs, rows.labels, rows.weights, rows.features)))
    return f"{len(rows)} rows with the digest {digest}"


def check_same_training(directory: Any, before: dict[str, Any] | None, now: dict[str, Any]) -> None:
    """Raises a ValueError that names the differences if checkpoints are from another training.

    `before` is from the checkpoint, and `now` from `describe_training`.
    """
    # Under another backend, arrays that a user has packed may have another padding.
    if before is None or before["backend"] != now["backend"]:
        return
    differences = [
        f"the {name} was {before[name]} and is {now[name]}"
        for name in now
        if name in before and before[name] != now[name]
    ]
    if differences:
        raise ValueError(
            f"{directory} holds the checkpoints of another training: {'; '.join(differences)}. "
            "Give each training a folder of its own, such as one for each fold, or resume with "
            "the same data and arguments."
        )


def _digest(columns):
    """A short text that differs if a value of a column does."""
    digest = hashlib.blake2b(digest_size=6)
    for column in columns:
        if column is None:
            continue
        column = np.asarray(column)
        digest.update(f"{column.shape}".encode())
        if column.dtype != object:
            digest.update(f"{column.dtype}".encode() + np.ascontiguousarray(column).tobytes())
            continue
        for value in column.ravel():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":  # Frames are large.
                digest.update(f"{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
                continue
            value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
            digest.update(f"{value!r}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _name(value):
    if value is None or isinstance(value, str):
        return value
    return getattr(value, "__name__", type(value).__name__)
