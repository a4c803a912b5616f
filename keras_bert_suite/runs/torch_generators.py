"""Copies and restores the states of PyTorch's own random generators, in all processes.

Under the PyTorch backend, Keras' dropout draws from these generators, unless its layer has a seed.
PyTorch's attention kernel and each new iterator of a `DataLoader` draw from them too.
"""

import contextlib
import hashlib
from collections.abc import Iterator

import keras

from keras_bert_suite.annotations import Arrays
from keras_bert_suite.replicas import find_process
from keras_bert_suite.replicas.processes import exchange

PREFIX = "torch_generators/"


def copy_generators() -> Arrays:
    """The states of the generators of all processes. All processes call this at the same point.

    They are uint8 arrays by name, none under other backends. The names of the first process have no
    number, so that a run may resume with another number of processes.
    """
    return {
        _prefix(process) + device: state
        for process, states in enumerate(exchange(copy_own_generators()))
        for device, state in states.items()
    }


def restore_generators(arrays: Arrays) -> None:
    """Sets the generators to the states that `copy_generators` has copied.

    A process without a saved state takes another state, made of the first process's. Names of other
    things, and of GPUs that this machine lacks, are ignored.
    """
    if keras.config.backend() != "torch" or PREFIX + "cpu" not in arrays:
        return
    import torch

    process = find_process().index
    if _prefix(process) + "cpu" not in arrays:
        digest = hashlib.sha256(arrays[PREFIX + "cpu"].tobytes() + str(process).encode()).digest()
        torch.manual_seed(int.from_bytes(digest[:7], "little"))
        return
    prefix = _prefix(process)
    _set_own({n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)})


@contextlib.contextmanager
def repeated(states: Arrays | None) -> Iterator[None]:
    """Lets a block draw the numbers that follow states, and then goes on where it began.

    `states` come from `copy_own_generators`. None changes nothing.
    """
    if not states:
        yield
        return
    now = copy_own_generators()
    _set_own(states)
    yield
    _set_own(now)


def separate_generators() -> None:
    """Gives each process different random numbers. The first process keeps its states.

    Users seed all processes alike. Then all replicas would drop the same positions of their rows.
    """
    if keras.config.backend() != "torch":
        return
    if find_process().leads:
        copy_generators()
        return
    restore_generators({PREFIX + "cpu": copy_generators()[PREFIX + "cpu"]})


def copy_own_generators() -> Arrays:
    """dict of device -> uint8 array, the states of this process; none under other backends."""
    if keras.config.backend() != "torch":
        return {}
    import torch

    states = {"cpu": torch.get_rng_state()}
    states |= {f"cuda:{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return {device: state.numpy().copy() for device, state in states.items()}


def _set_own(states: Arrays) -> None:
    import torch

    torch.set_rng_state(torch.from_numpy(states["cpu"]))
    for i in range(torch.cuda.device_count()):
        if (state := states.get(f"cuda:{i}")) is not None:
            torch.cuda.set_rng_state(torch.from_numpy(state), i)


def _prefix(process: int) -> str:
    return PREFIX if process == 0 else f"{PREFIX}process-{process}/"
