"""A run goes on under another backend and on another number of devices."""

import shutil

import numpy as np
import pytest
from child_process import finish, start
from small_pretraining import STEPS

pytestmark = pytest.mark.long("faults")

#: Within an epoch.
STOP = STEPS // 2 + 2


def start_run(backend, folder, stop=0):
    """Starts a run, under JAX on two devices."""
    folder.mkdir(exist_ok=True)
    script = "distributed/backend_run.py"
    return start(script, folder, stop, num_devices=2, KERAS_BACKEND=backend)


def read_run(folder):
    """(batches of the run, list of all variables)."""
    with np.load(folder / "arrays.npz") as file:
        batches, *arrays = (file[name] for name in file.files)
    return int(batches), arrays


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """backend -> the folder of a run that was stopped half-way; "whole" -> that of a whole run."""
    backends = ("jax", "torch", "tensorflow")
    folders = {name: tmp_path_factory.mktemp(name) for name in (*backends, "whole")}
    processes = [start_run(backend, folders[backend], STOP) for backend in backends]
    for process in [*processes, start_run("jax", folders["whole"])]:
        finish(process)
    return folders


@pytest.mark.parametrize(
    ("before", "after"),
    [("jax", "torch"), ("jax", "tensorflow"), ("torch", "jax"), ("tensorflow", "jax")],
)
def test_a_run_goes_on_under_another_backend(before, after, stopped, tmp_path):
    # The signal came after the checkpoint had looked for it.
    assert read_run(stopped[before])[0] == STOP + 1
    folder = shutil.copytree(stopped[before], tmp_path / "run")
    finish(start_run(after, folder))
    (batches, arrays), (_, wanted) = read_run(folder), read_run(stopped["whole"])
    assert batches == STEPS
    for found, array in zip(arrays, wanted, strict=True):
        np.testing.assert_allclose(found, array, rtol=1e-3, atol=1e-4)
