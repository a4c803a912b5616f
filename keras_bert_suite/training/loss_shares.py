"""Makes the losses of all replicas sum to the loss of the whole batch."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.replicas import count_replicas, sum_over_replicas


def share_loss(loss: keras.losses.Loss) -> Callable[..., Tensor]:
    """Makes a loss return the part of this replica in the loss of the whole batch.

    A loss of Keras is a mean over rows, or a weighted mean. The share of a replica is its mean,
    times its part of the rows or of the weights. The sum over the replicas is the loss of the
    batch. With one replica nothing changes. A loss with a true attribute `is_shared` returns the
    share itself.
    """
    if getattr(loss, "is_shared", False):
        return loss

    def compute_share(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        value = loss(y_true, y_pred, sample_weight)
        num_replicas = count_replicas()
        if num_replicas == 1 or keras.config.backend() == "jax":
            return value
        if loss.reduction in (None, "none"):
            raise ValueError(
                f"The loss {loss.name} has reduction={loss.reduction!r}, so it is no number that "
                f"{num_replicas} replicas could sum. Build it with "
                "reduction='sum_over_batch_size'."
            )
        value = ops.sum(value)  # Keras returns the losses of no rows as an array without elements.
        if loss.reduction == "sum":
            return value
        if keras.config.backend() == "tensorflow":
            value = value * num_replicas  # Keras has divided by it.
        own = measure_loss(loss, y_true, sample_weight)
        return value * ops.cast(ops.divide_no_nan(own, sum_over_replicas(own)), value.dtype)

    return compute_share


def mean_over_rows(losses: Tensor) -> Tensor:
    """The share of a replica in the mean of the losses (B,) of all rows of a batch."""
    if count_replicas() == 1 or keras.config.backend() == "jax":
        return ops.mean(losses)
    return ops.sum(losses) / count_rows(losses)


def count_rows(array: Tensor) -> Tensor:
    """float32 scalar, the rows of the whole batch, of which `array` (B, ...) has a replica's."""
    rows = ops.convert_to_tensor(ops.cast(ops.shape(array)[0], "float32"))
    if count_replicas() == 1 or keras.config.backend() == "jax":
        return rows
    return sum_over_replicas(rows)


def measure_loss(loss: Any, y_true: Any, sample_weight: Any = None) -> Tensor:
    """float32 scalar, the weight of the loss of some rows in a mean over several batches.

    It is the number of the rows, or the sum of their weights if the loss is divided by the sum. A
    loss may have a method `measure`.
    """
    if hasattr(loss, "measure"):
        return loss.measure(y_true, sample_weight)
    if getattr(loss, "reduction", None) == "mean_with_sample_weight" and sample_weight is not None:
        return ops.sum(ops.cast(sample_weight, "float32"))
    rows = ops.shape(keras.tree.flatten(y_true)[0])[0]
    return ops.cast(ops.convert_to_tensor(rows), "float32")
