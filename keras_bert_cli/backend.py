"""Chooses the backend that Keras is imported with."""

import os
import sys

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
