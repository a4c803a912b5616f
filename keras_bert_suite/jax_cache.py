"""Lets JAX keep compiled steps for the next process."""

import os

import keras

VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def keep_compiled_steps() -> None:
    """Names a folder for JAX's compiled programs, unless the user has named one.

    A process then takes the steps that an earlier one has compiled. JAX makes the folder, and
    several processes may share it. It is in `XDG_CACHE_HOME` or `~/.cache`. The user may name
    another one in `JAX_COMPILATION_CACHE_DIR`, or none by an empty value.

    By default JAX keeps only programs that took a second to compile. To build a model and to
    predict takes dozens of smaller programs, some seconds in all, so the folder has all of them.
    """
    if keras.config.backend() != "jax" or VARIABLE in os.environ:
        return
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(home, "keras_bert_suite", "jax")
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
