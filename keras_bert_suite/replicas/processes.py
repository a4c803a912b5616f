"""Exchanges values of the processes that share each batch, compares batches, copies variables."""

import contextlib
import functools
import hashlib
import itertools
import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_suite.replicas.find_replicas import (
    find_process,
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
    if find_process().leads:
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


def check_same(facts: Mapping[str, Any]) -> None:
    """Raises a ValueError in all processes if one has another fact than the first process.

    All of them call it at the same place. `facts` are objects by name that JSON can write, or a
    text can describe.
    """
    own = {name: json.dumps(fact, sort_keys=True, default=str) for name, fact in facts.items()}
    first, *others = exchange(own)
    for index, other in enumerate(others, start=1):
        for name in first:
            if other.get(name) != first[name]:
                raise ValueError(
                    f"Processes share each call, but process {index} has another {name} than "
                    f"process 0: {str(other.get(name))[:100]} instead of {first[name][:100]}. Make "
                    "the same calls with the same arguments and the same data in all processes. "
                    "Each takes its rows of every batch itself: drop a DistributedSampler, and "
                    "shuffle by a common seed (a DataLoader takes a seeded `generator`)."
                )


def compare_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Yields each batch after all processes have read the same batch.

    All processes iterate at the same places. They exchange a digest of each batch, and so they also
    find out at once that one of them has fewer batches.
    """
    for number in itertools.count(1):
        batch = next(batches, None)
        check_same({f"batch {number}": "no batch" if batch is None else digest_batch(batch)})
        if batch is None:
            return
        yield batch


def digest_batch(batch: Any) -> str:
    """A text that differs if an array of a batch has another dtype, shape or value."""
    digest = hashlib.blake2b(digest_size=16)
    for array in keras.tree.flatten(batch):
        if array is not None:
            array = np.ascontiguousarray(array)
            digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
