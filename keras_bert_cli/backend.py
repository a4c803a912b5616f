"""Chooses the backend of Keras, and settings that make it quick on a CPU."""

import ctypes
import os
import platform
import sys

BACKENDS = ("tensorflow", "jax", "torch")

#: Parameters of the C library's `mallopt`, with the variables of the environment that set them.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_MEMORY_VARIABLES = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_"}


def choose_backend(name):
    """Chooses the backend before Keras is imported; None takes it from the environment."""
    if name is None:
        return
    keras = sys.modules.get("keras")
    if keras and keras.config.backend() != name:
        raise ValueError(
            f"Keras is already loaded with the backend {keras.config.backend()!r}, wanted "
            f"{name!r}. Set KERAS_BACKEND={name} before the process starts."
        )
    os.environ["KERAS_BACKEND"] = name


def use_onednn():
    """Has TensorFlow compute by oneDNN on each x86 processor, before it is imported.

    By default it does so only on processors with AVX512_VNNI. On others `fit` then takes up to
    twice as long. Sums are in another order, so results differ in their last digits. The user may
    choose by the variable `TF_ENABLE_ONEDNN_OPTS`.
    """
    if platform.machine().lower() in ("x86_64", "amd64"):
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def keep_freed_memory():
    """Lets the C library keep the memory that a step frees, for the next step.

    TensorFlow allocates and frees the arrays of a step one by one. By default the C library of
    Linux gives the memory of large arrays back to the kernel, which clears it before it hands it
    out again. That can take as long as the step itself. The user may choose other settings by the
    variables `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_MAX_`. Other systems are left as they are.

    Source: https://man7.org/linux/man-pages/man3/mallopt.3.html.
    """
    if sys.platform != "linux" or _MEMORY_VARIABLES & os.environ.keys():
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_TRIM_THRESHOLD, 1 << 30)
        library.mallopt(_MMAP_MAX, 0)
