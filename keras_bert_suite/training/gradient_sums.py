"""The gradients of replicas: summed before an optimizer clips them, or accumulated over batches.

Under PyTorch an optimizer sums the gradients of the processes when it updates the weights. Until
then the accumulators of each process hold its share. Under JAX they hold the gradients of the whole
batch.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from keras_bert_suite.replicas import count_replicas, find_process, sum_over_replicas
from keras_bert_suite.replicas.find_replicas import find_torch_processes
from keras_bert_suite.replicas.sums import sum_gradients


def sum_before_clipping(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer sum gradients over the replicas, once a step, before it clips them.

    Under PyTorch, Keras 3.15 does not sum them at all. Under TensorFlow, it clips the gradients of
    each replica and then sums them: the norm would be of a share of the batch, and one replica
    alone would know of a gradient that is not finite. Under JAX a step is one program.

    Args:
        optimizer: any optimizer of Keras. A second call changes nothing.
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        _agree_on_finite(optimizer)
        optimizer = optimizer.inner_optimizer
    if keras.config.backend() == "jax" or "_clip_gradients" in vars(optimizer):
        return
    clip = optimizer._clip_gradients

    def sum_and_clip(gradients: list[Any]) -> list[Any]:
        return clip(sum_gradients(gradients))

    # `setattr` of Keras would look for variables in the functions.
    vars(optimizer)["_clip_gradients"] = sum_and_clip
    # TensorFlow's optimizers would sum a second time.
    vars(optimizer)["_all_reduce_sum_gradients"] = lambda pairs: pairs


def _agree_on_finite(optimizer: keras.optimizers.LossScaleOptimizer) -> None:
    """Makes a loss scale judge the gradients of all replicas."""
    if keras.config.backend() == "jax" or "check_finite" in vars(optimizer):
        return
    check = optimizer.check_finite

    def check_all(gradients: list[Any]) -> Any:
        finite = keras.ops.cast(check(gradients), "float32")
        return sum_over_replicas(finite) >= count_replicas()

    vars(optimizer)["check_finite"] = check_all


def list_accumulators(optimizer: keras.optimizers.Optimizer) -> list[keras.Variable]:
    """The variables in which a built optimizer accumulates gradients."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not optimizer.gradient_accumulation_steps:
        return []
    return [variable for variable in optimizer._accumulated_gradients if variable is not None]


@contextlib.contextmanager
def summed_accumulators(optimizer: keras.optimizers.Optimizer) -> Iterator[None]:
    """Within the block the accumulators hold their sums over all processes.

    It takes a copy of them in memory.
    """
    accumulators = list_accumulators(optimizer)
    if not accumulators or find_torch_processes() is None:
        yield
        return
    import torch

    tensors = [variable.value.detach() for variable in accumulators]
    with torch.no_grad():
        own = [tensor.clone() for tensor in tensors]
        sum_gradients(tensors)
        try:
            yield
        finally:
            torch._foreach_copy_(tensors, own)


def keep_on_leader(optimizer: keras.optimizers.Optimizer) -> None:
    """Empties the accumulators of all processes but the first, which hold sums of all processes."""
    if find_torch_processes() is None or find_process().leads:
        return
    for variable in list_accumulators(optimizer):
        variable.assign(keras.ops.zeros_like(variable))
