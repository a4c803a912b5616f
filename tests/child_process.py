"""Runs a script of the tests in a process of its own, without TensorFlow if it needs none."""

import os
import subprocess
import sys
from pathlib import Path

#: Under the other backends the scripts need no TensorFlow, whose import takes longer than they do.
_START = """
import os, runpy, sys
if os.environ["KERAS_BACKEND"] != "tensorflow":
    sys.modules["tensorflow"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(script, *arguments, num_devices, **environment):
    """Starts a script on a CPU, under JAX if KERAS_BACKEND does not say otherwise.

    Args:
        script: path in the folder of the tests.
        *arguments: of its command line.
        num_devices: int, devices of JAX in the process.
        **environment: further variables.

    Returns:
        `subprocess.Popen`, whose output is text.
    """
    environment = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(num_devices),
        **environment,
    }
    return subprocess.Popen(
        _list_command(script, arguments),
        env=_make_environment(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process):
    """Waits for a process that `start` has started, and asserts that it succeeded."""
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return output


def run(script, *arguments, **environment):
    """Runs a script to its end, on the backend of this process or of KERAS_BACKEND.

    Args:
        script, *arguments: as of `start`.
        **environment: further variables.

    Returns:
        `subprocess.CompletedProcess`, whose outputs are texts.
    """
    return subprocess.run(
        _list_command(script, arguments),
        env=_make_environment(environment),
        capture_output=True,
        text=True,
    )


def _list_command(script, arguments):
    path = Path(__file__).parent / script
    return [sys.executable, "-c", _START, str(path), *map(str, arguments)]


def _make_environment(variables):
    own = {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    return {**os.environ, **own, **variables}
