"""Chooses the backend of Keras, and the folder in which JAX keeps compiled steps."""

import os
import sys
from pathlib import Path

BACKENDS = ("tensorflow", "jax", "torch")


def choose_backend(name):
    """Chooses the backend before Keras is imported.

    Args:
        name: one of `BACKENDS`, or None for the backend of the environment or of Keras'
            configuration.

    Raises:
        ValueError: if Keras is loaded already, with another backend.
    """
    if name is None:
        return
    keras = sys.modules.get("keras")
    if keras and keras.config.backend() != name:
        raise ValueError(
            f"Keras is already loaded with the backend {keras.config.backend()!r}, wanted "
            f"{name!r}. Set KERAS_BACKEND={name} before the process starts."
        )
    os.environ["KERAS_BACKEND"] = name


def keep_compiled_steps():
    """Lets JAX keep compiled steps for the next command, before JAX is imported.

    The folder is in `XDG_CACHE_HOME` or `~/.cache`. The user may name another folder in
    `JAX_COMPILATION_CACHE_DIR`, or none by an empty value. JAX makes the folder. It would warn at
    each step of a folder that it cannot write, so such a folder is not named.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(home) / "keras_bert_suite" / "jax"
    place = next(path for path in (folder, *folder.parents) if path.exists())
    if folder.is_absolute() and place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
