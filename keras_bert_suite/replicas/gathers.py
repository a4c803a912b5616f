"""Gathers the rows of all replicas on each replica."""

import functools
from typing import Any

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.replicas.groups import count_replicas, find_torch_processes


def gather_rows(rows: Tensor) -> tuple[Tensor, Any]:
    """The rows of all replicas, in the order of the batch. Gradients flow back to each replica.

    A loss that compares the rows of a batch with each other needs it. Each replica gets the sum of
    the gradients that all replicas have for its rows.

    Args:
        rows: float or int (B, ...). The replicas may have different numbers of rows.

    Returns:
        (the rows of all replicas; int, how many of them come before the rows of this replica).
        With one replica, and under JAX, where a step sees the whole batch: (`rows`, 0).
    """
    return _GATHERS[keras.config.backend()](rows)


def _gather_torch(rows: Tensor) -> tuple[Tensor, int]:
    processes = find_torch_processes()
    if processes is None or rows.device.type == "meta":
        return rows, 0
    sizes = rows.new_zeros(processes.get_world_size(), dtype=int)
    sizes[processes.get_rank()] = len(rows)
    processes.all_reduce(sizes)
    first = int(sizes[: processes.get_rank()].sum())
    return _torch_gather().apply(rows, first, int(sizes.sum())), first


@functools.cache
def _torch_gather() -> Any:
    """The function of PyTorch that gathers rows, with its gradient."""
    import torch

    class Gather(torch.autograd.Function):
        """A sum of arrays that are 0 outside of the own rows: shares differ in size."""

        @staticmethod
        def forward(context: Any, rows: Tensor, first: int, total: int) -> Tensor:
            context.place = first, first + len(rows)
            gathered = rows.new_zeros(total, *rows.shape[1:])
            gathered[first : first + len(rows)] = rows
            torch.distributed.all_reduce(gathered)
            return gathered

        @staticmethod
        def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
            gradient = gradient.clone(memory_format=torch.contiguous_format)
            torch.distributed.all_reduce(gradient)
            first, last = context.place
            return gradient[first:last], None, None

    return Gather


def _gather_tensorflow(rows: Tensor) -> tuple[Tensor, Any]:
    if count_replicas() == 1:
        return rows, 0
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None:
        return rows, 0
    sizes = context.all_gather(tf.shape(rows)[:1], axis=0)
    first = tf.reduce_sum(sizes[: context.replica_id_in_sync_group])
    gathered = context.all_gather(rows, axis=0)
    return tf.ensure_shape(gathered, [None, *rows.shape[1:]]), first


_GATHERS = {
    "torch": _gather_torch,
    "tensorflow": _gather_tensorflow,
    "jax": lambda rows: (rows, 0),
}
