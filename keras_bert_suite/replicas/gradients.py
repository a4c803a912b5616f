"""Sums gradients over replicas."""

from typing import Any

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.replicas.groups import count_replicas, find_torch_processes

#: Gradients are sent in buckets of so many bytes, the size that PyTorch's own
#: DistributedDataParallel has. A larger gradient is sent as it is, without a copy.
BUCKET_BYTES = 25 * 2**20


def sum_gradients(gradients: list[Any]) -> list[Any]:
    """The gradients, summed over all replicas.

    Args:
        gradients: list of tensors, the same shapes in the same order on each replica. PyTorch's
            tensors are changed in place.

    Returns:
        list of tensors. Under TensorFlow none of them is `tf.IndexedSlices`. With one replica of
        PyTorch, and under JAX, it is the list itself.
    """
    return _SUMS[keras.config.backend()](gradients)


def _sum_torch(gradients: list[Tensor]) -> list[Tensor]:
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


def _sum_tensorflow(gradients: list[Any]) -> list[Any]:
    import tensorflow as tf

    # The gradient of an embedding has a part for each time that a token occurs. Keras would take
    # the norm of the parts, and the square of each, and not those of their sum.
    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
    if count_replicas() == 1:
        return gradients
    return tf.distribute.get_replica_context().all_reduce("SUM", gradients)


_SUMS = {"torch": _sum_torch, "tensorflow": _sum_tensorflow, "jax": lambda gradients: gradients}
