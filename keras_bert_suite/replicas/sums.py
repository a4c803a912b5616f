"""Sums over replicas, and gathers the rows of all replicas on each of them."""

import functools
from typing import Any

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.replicas.find_replicas import count_replicas, find_torch_processes

#: Gradients are sent in buckets of so many bytes, the size that PyTorch's own
#: DistributedDataParallel has. A larger gradient is sent as it is, without a copy.
BUCKET_BYTES = 25 * 2**20


def sum_over_replicas(x: Tensor) -> Tensor:
    """The sum of a float tensor over all replicas. No gradient flows through the sum.

    The losses of the package divide by such sums: the number of rows, or the sum of the weights.
    Then the sum of the losses of all replicas is the loss of the whole batch, and so is the sum of
    their gradients. Under JAX, where a step is one program over the arrays of the whole batch, and
    with one replica, it is the tensor itself.
    """
    # To learn shapes, Keras calls a loss once outside of a step, on a device without values.
    if keras.config.backend() == "torch":
        processes = find_torch_processes()
        if processes is None or x.device.type == "meta":
            return x
        total = x.detach().clone()
        processes.all_reduce(total)
        return total
    context = _find_context()
    if context is None:
        return x
    import tensorflow as tf

    return tf.stop_gradient(context.all_reduce("SUM", x))


def _find_context() -> Any:
    """TensorFlow's context of a step that several replicas share, or None."""
    if keras.config.backend() != "tensorflow" or count_replicas() == 1:
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def sum_gradients(gradients: list[Any]) -> list[Any]:
    """The gradients, summed over all replicas: a list of the same shapes in the same order on each.

    PyTorch's tensors are changed in place. Under TensorFlow no result is `tf.IndexedSlices`. With
    one replica of PyTorch, and under JAX, it is the list itself.
    """
    if keras.config.backend() == "torch":
        return _sum_gradients_torch(gradients)
    if keras.config.backend() == "jax":
        return gradients
    import tensorflow as tf

    # The gradient of an embedding has a part for each time that a token occurs. Keras would take
    # the norm and the squares of the parts, and not of their sum.
    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
    context = _find_context()
    return gradients if context is None else context.all_reduce("SUM", gradients)


def _sum_gradients_torch(gradients: list[Tensor]) -> list[Tensor]:
    processes = find_torch_processes()
    if processes is None:
        return gradients
    import torch

    waiting = []
    for bucket in _fill_buckets(gradients):
        alone = len(bucket) == 1 and bucket[0].is_contiguous()
        flat = bucket[0] if alone else torch.cat([gradient.reshape(-1) for gradient in bucket])
        waiting.append((processes.all_reduce(flat, async_op=True), bucket, None if alone else flat))
    for work, bucket, flat in waiting:
        work.wait()
        if flat is not None:
            parts = flat.split([gradient.numel() for gradient in bucket])
            views = [p.view(g.shape) for p, g in zip(parts, bucket, strict=True)]
            torch._foreach_copy_(bucket, views)
    return gradients


def _fill_buckets(gradients: list[Tensor]) -> list[list[Tensor]]:
    """Neighbouring gradients of one dtype, at most `BUCKET_BYTES` unless a bucket has only one."""
    buckets: list[list[Tensor]] = []
    room, dtype = 0, None
    for gradient in gradients:
        size = gradient.numel() * gradient.element_size()
        if gradient.dtype != dtype or size > room:
            buckets.append([])
            room, dtype = BUCKET_BYTES, gradient.dtype
        buckets[-1].append(gradient)
        room -= size
    return buckets


def gather_rows(rows: Tensor) -> tuple[Tensor, Any]:
    """The rows of all replicas, in the order of the batch. Gradients flow back to each replica.

    A loss that compares the rows of a batch with each other needs it. Each replica gets the sum of
    the gradients that all replicas have for its rows. The replicas may have different numbers of
    rows (B, ...).

    Returns:
        (the rows of all replicas; int, how many of them come before the rows of this replica).
        With one replica, and under JAX, where a step sees the whole batch: (`rows`, 0).
    """
    if keras.config.backend() == "torch":
        return _gather_torch(rows)
    context = _find_context()
    if context is None:
        return rows, 0
    import tensorflow as tf

    sizes = context.all_gather(tf.shape(rows)[:1], axis=0)
    first = tf.reduce_sum(sizes[: context.replica_id_in_sync_group])
    gathered = context.all_gather(rows, axis=0)
    return tf.ensure_shape(gathered, [None, *rows.shape[1:]]), first


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
