"""The Euclidean lengths of rows of embeddings. All tokens of a row count together."""

from typing import Any

from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.training.techniques.technique import Batch


def measure_rows(x: Tensor) -> Tensor:
    """The lengths of the rows of a tensor (B, ..., E), as (B, 1, ..., 1)."""
    axes = tuple(range(1, len(x.shape)))
    return ops.sqrt(ops.sum(ops.square(x), axis=axes, keepdims=True))


def scale_rows(x: Tensor, length: float) -> Tensor:
    """The rows with another length. A row of zeros stays."""
    return length * ops.divide_no_nan(x, measure_rows(x))


def limit_rows(x: Tensor, length: float) -> Tensor:
    """The rows, of which longer ones are cut to `length`."""
    return x * ops.minimum(1.0, ops.divide_no_nan(length, measure_rows(x)))


def mark_tokens(batch: Batch) -> Any:
    """float32 (B, L, 1), 1 for a token and 0 for padding."""
    return ops.cast(batch.x["padding_mask"] != 0, "float32")[..., None]
