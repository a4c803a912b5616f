"""Warns of bfloat16 on a processor that has no instructions for it."""

import functools
import warnings
from pathlib import Path

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike

#: Instructions that multiply numbers in bfloat16, as Linux names them for x86 and for ARM.
INSTRUCTIONS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})


def warn_if_emulated(task: keras_hub.models.Task, trains: bool) -> None:
    """Warns, once in a process, if a task computes in bfloat16 and the hardware emulates it.

    Args:
        task: the task.
        trains: bool, whether the task is about to be trained. False if it is about to predict.

    There is no warning for accelerators, nor for processors whose instructions are unknown, as
    under Windows and macOS.

    Times of the product of a (512, 768) and a (768, 3072) matrix on one core of an AMD EPYC, in
    bfloat16 and in float32: PyTorch 5 and 27 ms, TensorFlow 6 and 13 ms. Without AVX512-BF16:
    PyTorch 31 and 26 ms, TensorFlow 32 and 13 ms. Without AVX-512: PyTorch 100 and 26 ms.
    """
    if task.backbone.compute_dtype == "bfloat16" and _is_emulated(trains):
        _warn_once()


def _is_emulated(trains: bool) -> bool:
    """Whether the backend converts bfloat16 to float32 to multiply, and the product back."""
    if has_accelerator():
        return False
    # XLA multiplies two bfloat16 matrices in float32 on every CPU, if the product is bfloat16. The
    # products of a prediction are float32.
    if keras.config.backend() == "jax" and trains:
        return True
    known = read_instructions()
    return bool(known) and INSTRUCTIONS.isdisjoint(known)


def has_accelerator() -> bool:
    """Whether the backend puts new tensors on a device that is not a CPU."""
    if keras.config.backend() == "torch":
        return keras.ops.zeros(()).device.type != "cpu"
    return any(not device.startswith("cpu") for device in keras.distribution.list_devices())


@functools.cache
def read_instructions(file: PathLike = "/proc/cpuinfo") -> frozenset[str]:
    """The processor's instructions by name, from a file of Linux; empty if the file is missing."""
    path = Path(file)
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, words = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return frozenset(words.split())
    return frozenset()


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        f"{keras.config.backend()} has no bfloat16 on this processor: it multiplies in float32 and "
        "converts all numbers, so that training and predicting take about twice as long as in "
        "float32, or longer. Only memory is saved. Build the task with dtype='float32' (--dtype "
        "float32), or use an accelerator.",
        # The caller of `fit`.
        stacklevel=4,
    )
