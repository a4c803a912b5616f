"""Gradients that an optimizer accumulates over batches, where processes share each batch.

Under PyTorch an optimizer sums the gradients of the processes when it updates the weights. Until
then the accumulators of each process hold its own share. Under JAX they hold the gradients of the
whole batch.
"""

import contextlib
from collections.abc import Iterator

import keras

from keras_bert_suite.replicas.groups import find_group, find_torch_processes
from keras_bert_suite.replicas.sums import sum_gradients


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
    if find_torch_processes() is None or find_group().leads:
        return
    for variable in list_accumulators(optimizer):
        variable.assign(keras.ops.zeros_like(variable))
