"""Runs an export under the TensorFlow backend, whichever one the task was trained with.

A process of another backend starts one of its own for it:
`python -m keras_bert_suite.serving.tensorflow_process WRITER TASK.keras DIRECTORY OPTIONS`
"""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import keras


def check_installed(what, packages):
    """Raises ImportError unless all modules are installed.

    Args:
        what: str, what is to be written.
        packages: dict, name of a module -> what to install for it.
    """
    missing = {
        module: package
        for module, package in packages.items()
        if importlib.util.find_spec(module) is None
    }
    if missing:
        raise ImportError(
            f"Writing {what} needs {', '.join(missing)}, which is not installed: "
            f"pip install {' '.join(missing.values())}"
        )


def write_under_tensorflow(write, task, directory, **options):
    """Calls `write(task, directory, **options)`.

    Under JAX and PyTorch the task is saved to a temporary `.keras` file and rebuilt in a
    process that has TensorFlow as its backend; its layers must be ones that process can
    import.

    Args:
        write: function of a module.
        task: `keras_hub.models.Task`.
        directory: `pathlib.Path`, an existing directory.
        **options: what JSON can hold.

    Raises:
        RuntimeError: if that process fails, with what it said.
    """
    if keras.config.backend() == "tensorflow":
        write(task, directory, **options)
        return
    with tempfile.TemporaryDirectory() as scratch:
        file = os.path.join(scratch, "task.keras")
        task.save(file)
        writer = f"{write.__module__}:{write.__name__}"
        arguments = [writer, file, str(directory), json.dumps(options)]
        process = subprocess.run(
            [sys.executable, "-m", __name__, *arguments],
            env={
                **os.environ,
                "KERAS_BACKEND": "tensorflow",
                # The memory of an accelerator belongs to the process that trains.
                "CUDA_VISIBLE_DEVICES": "-1",
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            },
            capture_output=True,
            text=True,
        )
    if process.returncode:
        raise RuntimeError(
            f"The export under TensorFlow failed. The process said:\n{process.stderr[-2000:]}"
        )


def main(writer, file, directory, options):
    """The other end of `write_under_tensorflow`."""
    from pathlib import Path

    module, _, name = writer.partition(":")
    write = getattr(importlib.import_module(module), name)
    write(keras.saving.load_model(file, compile=False), Path(directory), **json.loads(options))


if __name__ == "__main__":
    main(*sys.argv[1:])
