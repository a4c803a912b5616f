"""The package imports little on each backend, and works without TensorFlow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Imports the package, and nothing that keras_hub has not imported.
IMPORT = """
import sys
import keras_hub

before = set(sys.modules)
import keras_bert_suite

added = {name.partition(".")[0] for name in set(sys.modules) - before}
added -= {"keras_bert_suite", *sys.stdlib_module_names}
assert not added, f"{sorted(added)}: import them where they are used"
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


@pytest.mark.long("combinations")
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_import_costs_little(backend, tmp_path):
    run_python(IMPORT, backend, tmp_path)


@pytest.mark.parametrize(
    "backend", ["torch", pytest.param("jax", marks=pytest.mark.long("combinations"))]
)
def test_works_without_tensorflow(backend, tmp_path):
    run_python(HIDE_TENSORFLOW + IMPORT + USE_THE_PACKAGE + NOT_IMPORTED, backend, tmp_path)


def test_the_names_of_a_package_that_is_read_later():
    from keras_bert_suite import heads

    assert {"TextClassifier", "MaskedLM", "Ensemble"} <= {*dir(heads)}
    assert all(getattr(heads, name) is not None for name in dir(heads))
