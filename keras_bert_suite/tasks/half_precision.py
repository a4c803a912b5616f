"""Warns of processors on which bfloat16 is slower than float32."""

import functools
import warnings
from pathlib import Path

import keras

#: Linux' names of the instructions that multiply bfloat16: of Intel and AMD, and of ARM.
_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}


def warn_of_emulation(backbone: keras.Model) -> None:
    """Warns that a CPU computes in bfloat16 by converting to float32 and back.

    Args:
        backbone: the encoder whose compute dtype counts.

    Warns:
        UserWarning: for the caller of the caller.
    """
    if backbone.compute_dtype == "bfloat16" and _is_emulated(keras.config.backend()):
        warnings.warn(
            "The model computes in bfloat16, which this processor emulates under "
            f"{keras.config.backend()}, so it is slower than float32. Load it with "
            'dtype="float32". On a GPU or TPU, bfloat16 is the faster one.',
            stacklevel=3,
        )


@functools.cache
def _is_emulated(backend: str) -> bool:
    if not _is_on_cpu(backend):
        return False
    # XLA multiplies in float32 on every CPU.
    return backend == "jax" or not _INSTRUCTIONS & set(_read_instructions())


def _is_on_cpu(backend: str) -> bool:
    if backend == "jax":
        import jax

        return jax.default_backend() == "cpu"
    if backend == "torch":
        import torch

        return not torch.accelerator.is_available()
    import tensorflow as tf

    return not {"GPU", "TPU"} & {device.device_type for device in tf.config.list_physical_devices()}


def _read_instructions() -> list[str]:
    """The instructions of the processor. Those that are not known are taken to be there."""
    table = Path("/proc/cpuinfo")
    if not table.exists():
        return list(_INSTRUCTIONS)
    for line in table.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return value.split()
    return list(_INSTRUCTIONS)
