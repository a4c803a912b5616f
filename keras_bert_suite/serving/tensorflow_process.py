"""Runs an export under the TensorFlow backend, whichever backend the task was trained with.

A process with another backend starts a new process for it:
`python -m keras_bert_suite.serving.tensorflow_process WRITER FOLDER DIRECTORY OPTIONS MODULES`
"""

import contextlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

import keras

from keras_bert_suite.heads.base.ensemble import Ensemble, members_of
from keras_bert_suite.runs.shown_average import show_average

#: A line says after so many seconds that an export goes on.
SECONDS_PER_LINE = 20


def check_installed(what, *modules):
    """Raises ImportError unless all modules are installed. `what` is the format to write."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        names = " ".join(missing).replace("_", "-").replace("serving", "serving-api")
        raise ImportError(
            f"Writing {what} needs {', '.join(missing)}, which is not installed: "
            f"pip install {names}"
        )


def write_under_tensorflow(write, task, directory, verbose="auto", **options):
    """Calls `write(task, directory, **options)` under TensorFlow.

    Under JAX and PyTorch the task is saved to a temporary `.keras` file, and rebuilt in a process
    that has TensorFlow as its backend. This process must be able to import its layers, and `write`,
    which is at the top of a module. Options are values that JSON can hold. What fails there is a
    RuntimeError.
    """
    with contextlib.ExitStack() as shown:
        for part in members_of(task):
            shown.enter_context(show_average(part))
        _write_shown(write, task, directory, verbose, **options)


def _write_shown(write, task, directory, verbose, **options):
    """`write_under_tensorflow` of a task whose averages of weights are in their place."""
    if keras.config.backend() == "tensorflow":
        write(task, directory, **options)
        return
    tasks = members_of(task)
    for part in tasks:
        if type(part).__module__ == "__main__":
            raise ValueError(
                f"{type(part).__name__} is a class of the script that runs, which the process that "
                "exports under TensorFlow does not import. Move the class into a module."
            )
    with tempfile.TemporaryDirectory() as scratch:
        for number, part in enumerate(tasks):
            # Not by `save`, which refuses LoRA: here the adapters shall be added to the kernels.
            keras.saving.save_model(part, os.path.join(scratch, f"{number}.keras"))
        writer = f"{write.__module__}:{write.__name__}"
        settings = task.get_settings() if isinstance(task, Ensemble) else None
        arguments = [writer, scratch, str(directory), json.dumps(options), json.dumps(settings)]
        arguments += dict.fromkeys(type(part).__module__ for part in tasks)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, *arguments],
            env={
                **os.environ,
                "KERAS_BACKEND": "tensorflow",
                # The memory of an accelerator belongs to the process that trains.
                "CUDA_VISIBLE_DEVICES": "-1",
                "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        printed = _wait(process, verbose)
    if process.returncode:
        raise RuntimeError(
            f"The export under TensorFlow failed. The process said:\n{_find_error(printed)}"
        )


def _wait(process, verbose):
    """Waits for the end of a process, and returns what it has printed to standard error.

    Unless `verbose` is 0, a line says why it takes long, and others that it goes on.
    """
    begin, said = time.monotonic(), f"A {keras.config.backend()} task is exported in a new process"
    with process:
        try:
            while True:
                try:
                    return process.communicate(timeout=SECONDS_PER_LINE)[1]
                except subprocess.TimeoutExpired:
                    if verbose:
                        print(f"{said} of TensorFlow: {time.monotonic() - begin:.0f} s", flush=True)
        except BaseException:
            process.kill()
            raise


def _find_error(printed):
    """The beginning of the last error that a process has printed. Its end may be long."""
    _, found, error = printed.rpartition("\n  File ")
    return error.partition("\n")[2][:2000] if found else printed[-2000:]


def main(writer, folder, directory, options, settings, *task_modules):
    """Runs in the process that `write_under_tensorflow` starts."""
    from pathlib import Path

    for name in task_modules:
        importlib.import_module(name)  # It registers the class of a task.
    module, _, name = writer.partition(":")
    write = getattr(importlib.import_module(module), name)
    files = sorted(Path(folder).glob("*.keras"), key=lambda file: int(file.stem))
    tasks = [keras.saving.load_model(file, compile=False) for file in files]
    settings = json.loads(settings)
    task = tasks[0] if settings is None else Ensemble.of(tasks, settings)
    write(task, Path(directory), **json.loads(options))


if __name__ == "__main__":
    main(*sys.argv[1:])
