"""The states of PyTorch's own random generators.

Keras' dropout draws from them under that backend, unless its layer was given a seed; so do
PyTorch's attention kernel and the making of each iterator of a `DataLoader`.
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
    """Goes on drawing from where `copy_generators` was called.

    Args:
        arrays: dict of name -> array; what is no generator of this machine is left out.
    """
    if keras.config.backend() != "torch":
        return
    import torch

    if PREFIX + "cpu" in arrays:
        torch.set_rng_state(torch.from_numpy(arrays[PREFIX + "cpu"]))
    for i in range(torch.cuda.device_count()):
        if f"{PREFIX}cuda:{i}" in arrays:
            torch.cuda.set_rng_state(torch.from_numpy(arrays[f"{PREFIX}cuda:{i}"]), i)
