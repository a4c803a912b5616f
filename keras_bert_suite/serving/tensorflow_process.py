"""Runs an export under the TensorFlow backend, whichever backend the task was trained with.

A process with another backend starts a new process for it:
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


def check_installed(what, *modules):
    """Raises ImportError unless all modules are installed. `what` is the format to write."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        names = " ".join(missing).replace("_", "-").replace("serving", "serving-api")
        raise ImportError(
            f"Writing {what} needs {', '.join(missing)}, which is not installed: "
            f"pip install {names}"
        )


def write_under_tensorflow(write, task, directory, **options):
    """Calls `write(task, directory, **options)` under TensorFlow.

    Under JAX and PyTorch the task is saved to a temporary `.keras` file, and rebuilt in a process
    that has TensorFlow as its backend. This process must be able to import its layers.

    Args:
        write: function at the top of a module.
        task: `keras_hub.models.Task`.
        directory: `pathlib.Path`, an existing directory.
        **options: values that JSON can hold.

    Raises:
        RuntimeError: if the process fails, with its last lines.
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
    """Runs in the process that `write_under_tensorflow` starts."""
    from pathlib import Path

    module, _, name = writer.partition(":")
    write = getattr(importlib.import_module(module), name)
    write(keras.saving.load_model(file, compile=False), Path(directory), **json.loads(options))


if __name__ == "__main__":
    main(*sys.argv[1:])
