"""Exchanges small values between the processes that share each batch, and copies variables."""

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_suite.replicas.groups import (
    find_group,
    find_torch_processes,
    has_joint_variables,
)


def exchange(value: Any) -> list[Any]:
    """The values of all processes, in their order.

    A value is a small object: numbers, texts, arrays, or tuples and dicts of them.
    """
    if has_joint_variables():
        return _exchange_jax(value)
    processes = find_torch_processes()
    if processes is None:
        return [value]
    values = [None] * processes.get_world_size()
    processes.all_gather_object(values, value, group=control_group())
    return values


def _exchange_jax(value: Any) -> list[Any]:
    """The pickled values go round as rows of bytes, which JAX wants of one length."""
    from jax.experimental.multihost_utils import process_allgather

    own = np.frombuffer(pickle.dumps(value), np.uint8)
    sizes = process_allgather(np.array(len(own)))
    row = np.zeros(sizes.max(), np.uint8)
    row[: len(own)] = own
    rows = process_allgather(row)
    return [pickle.loads(r[:size].tobytes()) for r, size in zip(rows, sizes, strict=True)]


def run_on_leader(function: Callable[[], Any]) -> Any:
    """Runs a function in the leading process only, and returns its result in all processes.

    An error of the function is raised in all processes.
    """
    result, error = None, None
    if find_group().leads:
        try:
            result = function()
        except Exception as raised:
            error = raised
    result, error = exchange((result, error))[0]
    if error is not None:
        raise error
    return result


def copy_from_leader(variables: Sequence[keras.Variable]) -> None:
    """Gives the variables of all processes the values of the leading process.

    Under JAX nothing is copied. JAX joins the values of all processes to one variable when it is
    made, and raises an error if the values differ.
    """
    processes = find_torch_processes()
    if processes is None:
        return
    import torch

    with torch.no_grad():
        for variable in variables:
            value = variable.value.detach().contiguous()
            processes.broadcast(value, src=0)
            variable.value.copy_(value)


@contextlib.contextmanager
def summed_variables(variables: Sequence[keras.Variable]) -> Iterator[None]:
    """Replaces the variables of metrics by their sums over all processes, while the block runs.

    A variable of a metric holds a sum or a count. Under TensorFlow nothing has to be done: a read
    outside of a step returns the sum over the devices.
    """
    processes = find_torch_processes()
    if processes is None or not variables:
        yield
        return
    import torch

    tensors = [variable.value for variable in variables]
    with torch.no_grad():
        own = [tensor.clone() for tensor in tensors]
        flat = torch.cat([tensor.reshape(-1).double() for tensor in tensors])
        processes.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))
        try:
            yield
        finally:
            for tensor, value in zip(tensors, own, strict=True):
                tensor.copy_(value)


def control_group() -> Any:
    """The process group of PyTorch for messages that use CPUs only.

    Messages on an accelerator would wait for the work in its queue.
    """
    import torch

    return _make_control_group(torch.distributed.group.WORLD)


@functools.lru_cache(maxsize=1)
def _make_control_group(world: Any) -> Any:
    import torch

    if torch.distributed.get_backend(world) == "gloo":
        return world
    return torch.distributed.new_group(backend="gloo")


def is_true_anywhere(flag: bool) -> bool:
    """Whether a flag is set in any process. All processes must call this at the same point.

    Under JAX the flags are set in all processes at once, see `SigtermFlag.check`.
    """
    processes = find_torch_processes()
    if processes is None:
        return flag
    import torch

    flags = torch.tensor([flag], dtype=torch.int32, device="cpu")
    processes.all_reduce(flags, op=processes.ReduceOp.MAX, group=control_group())
    return bool(flags.item())
