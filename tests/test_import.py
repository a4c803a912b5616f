"""The package imports quickly on each backend, and works without TensorFlow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: CPU seconds that importing the package may take on top of keras and keras_hub.
IMPORT_SECONDS = 0.5

#: Prints what importing the package adds to importing keras_hub.
MEASURE_IMPORT = """
import sys, time
import keras_hub

before = set(sys.modules)
start = time.process_time()
import keras_bert_suite

seconds = time.process_time() - start
added = {name.partition(".")[0] for name in set(sys.modules) - before}
third_party = sorted(added - {"keras_bert_suite"} - set(sys.stdlib_module_names))
print(f"{seconds:.3f}", *third_party)
"""

#: Makes TensorFlow as absent as if it had never been installed: nothing can import it,
#: and `importlib.util.find_spec` finds nothing.
HIDE_TENSORFLOW = """
import sys
from importlib.machinery import PathFinder

HIDDEN = {"tensorflow", "tensorflow_text"}

class WithoutTensorFlow(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in HIDDEN:
            return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutTensorFlow
"""

#: Tokenize, fit, predict, save and load.
USE_THE_PACKAGE = Path(__file__).parents[1].joinpath("scripts", "use_package.py").read_text("utf-8")

NOT_IMPORTED = "\nassert not {name.partition('.')[0] for name in sys.modules} & HIDDEN\n"


def run_python(code, backend, folder):
    """Runs code in a fresh interpreter and returns what it printed."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": path}
    command = [sys.executable, "-c", code]
    process = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


LONG = pytest.mark.long("combinations")


@pytest.mark.parametrize(
    "backend", ["torch", *(pytest.param(name, marks=LONG) for name in ("tensorflow", "jax"))]
)
def test_import_costs_little(backend, tmp_path):
    seconds, *third_party = run_python(MEASURE_IMPORT, backend, tmp_path).split()
    assert not third_party, "not loaded by keras_hub; import them where they are used"
    assert float(seconds) < IMPORT_SECONDS


@pytest.mark.parametrize("backend", ["torch", pytest.param("jax", marks=LONG)])
def test_works_without_tensorflow(backend, tmp_path):
    run_python(HIDE_TENSORFLOW + USE_THE_PACKAGE + NOT_IMPORTED, backend, tmp_path)
