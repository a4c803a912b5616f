"""Copies and restores the states of PyTorch's own random generators.

Under the PyTorch backend, Keras' dropout draws from these generators, unless its layer has a seed.
PyTorch's attention kernel and each new iterator of a `DataLoader` draw from them too.
"""

import keras

from keras_bert_suite.annotations import Arrays

PREFIX = "torch_generators/"


def copy_generators() -> Arrays:
    """dict of name -> uint8 array; empty under other backends."""
    if keras.config.backend() != "torch":
        return {}
    import torch

    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda:{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return {PREFIX + device: state.numpy().copy() for device, state in states.items()}


def restore_generators(arrays: Arrays) -> None:
    """Sets the generators to the state that `copy_generators` has copied.

    Args:
        arrays: dict of name -> array. Names of other things, and of GPUs that this machine lacks,
            are ignored.
    """
    if keras.config.backend() != "torch":
        return
    import torch

    if PREFIX + "cpu" in arrays:
        torch.set_rng_state(torch.from_numpy(arrays[PREFIX + "cpu"]))
    for i in range(torch.cuda.device_count()):
        if f"{PREFIX}cuda:{i}" in arrays:
            torch.cuda.set_rng_state(torch.from_numpy(arrays[f"{PREFIX}cuda:{i}"]), i)
