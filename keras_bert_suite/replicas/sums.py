"""Sums over replicas."""

import keras

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.replicas.groups import count_replicas, find_torch_processes


def sum_over_replicas(x: Tensor) -> Tensor:
    """The sum of a tensor over all replicas. No gradient flows through the sum.

    The losses of the package divide by such sums: the number of rows, or the sum of the weights.
    Then the sum of the losses of all replicas is the loss of the whole batch, and so is the sum of
    their gradients.

    Args:
        x: float tensor of the same shape on each replica.

    Returns:
        the same tensor if there is one replica. The same tensor under JAX too, where a step is one
        program over the arrays of the whole batch.
    """
    return _SUMS[keras.config.backend()](x)


def _sum_torch(x: Tensor) -> Tensor:
    processes = find_torch_processes()
    # Keras calls a loss once on a device without values, to learn shapes.
    if processes is None or x.device.type == "meta":
        return x
    total = x.detach().clone()
    processes.all_reduce(total)
    return total


def _sum_tensorflow(x: Tensor) -> Tensor:
    if count_replicas() == 1:
        return x
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    # Keras calls a loss once outside of a step, to learn shapes.
    return x if context is None else tf.stop_gradient(context.all_reduce("SUM", x))


_SUMS = {"torch": _sum_torch, "tensorflow": _sum_tensorflow, "jax": lambda x: x}
