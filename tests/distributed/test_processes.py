"""Processes of JAX that share a run: as one process, and after kills too."""

import shutil
import signal
import socket

import numpy as np
import pytest
from child_process import finish, start
from device_runs import STEPS, VALIDATION_STEPS

from keras_bert_suite.runs.run_checkpoints import find_checkpoint

pytestmark = [
    pytest.mark.backend("jax"),
    pytest.mark.long("faults"),
]


def find_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_run(folder, run="2x2", num_processes=2, **environment):
    """Starts the processes of a run, with four devices together."""
    port, devices = find_port(), 4 // num_processes
    arguments = "distributed/process_runs.py", folder, run, port, num_processes
    folder.mkdir(exist_ok=True)
    return [
        start(*arguments, process, num_devices=devices, **environment)
        for process in range(num_processes)
    ]


def read_run(folder, processes):
    """(losses, batches, dict of whole arrays) of a run that has ended."""
    for process in processes:
        finish(process)
    files = [dict(np.load(folder / f"{i}.npz")) for i in range(len(processes))]
    losses, batches = ([file.pop(name) for file in files] for name in ("losses", "batches"))
    assert len({str(each) for each in (*losses, *batches)}) == 2  # The same in all processes.
    for name, array in files[-1].items():
        np.testing.assert_array_equal(array, files[0][name], err_msg=name)
    return losses[0], int(batches[0]), files[0]


def checkpoints(folder):
    return folder / "checkpoints"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    return read_run(folder, start_run(folder))


@pytest.fixture(scope="module", params=[0, 1], ids="process {}".format)
def killed(request, tmp_path_factory):
    """The folder of a run of which one process was killed. The other ended by itself."""
    folder = tmp_path_factory.mktemp("killed")
    processes = start_run(folder, KILL=f"{request.param}:5")
    outputs = [process.communicate()[0] for process in processes]
    codes = [process.returncode for process in processes]
    assert codes.pop(request.param) == -signal.SIGKILL, outputs
    assert codes[0] != 0
    _, progress = find_checkpoint(checkpoints(folder))
    # Batch 4 may not have been on the disk yet.
    assert progress.batches in (2, 4)
    return folder


def assert_close(found, wanted):
    losses, batches, arrays = found
    assert batches == STEPS and arrays.keys() == wanted[2].keys()
    np.testing.assert_allclose(losses[-1], wanted[0][-1], rtol=1e-4)
    for name, array in arrays.items():
        np.testing.assert_allclose(array, wanted[2][name], atol=3e-4, rtol=1e-3, err_msg=name)


def test_as_one_process(uninterrupted, tmp_path):
    assert_close(read_run(tmp_path, start_run(tmp_path, "alone", 1)), uninterrupted)


def test_resumed_is_uninterrupted(killed, uninterrupted, tmp_path):
    """Bit for bit with as many processes and devices, otherwise up to rounding."""
    folders = [shutil.copytree(killed, tmp_path / name) for name in ("same", "one", "four")]
    losses, batches, arrays = read_run(folders[0], start_run(folders[0]))
    assert batches == STEPS
    np.testing.assert_array_equal(losses, uninterrupted[0][-len(losses) :])
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, uninterrupted[2][name], err_msg=name)
    for folder, run in zip(folders[1:], ("alone", "4 devices"), strict=True):
        assert_close(read_run(folder, start_run(folder, run, 1)), uninterrupted)


def test_sigterm_in_one_process_stops_both(uninterrupted, tmp_path):
    _, batches, _ = read_run(tmp_path, start_run(tmp_path, SIGTERM="1:3"))
    assert 3 <= batches < STEPS
    assert find_checkpoint(checkpoints(tmp_path))[1].batches == batches
    assert_close(read_run(tmp_path, start_run(tmp_path)), uninterrupted)


def test_sigterm_in_a_validation_ends_it(tmp_path):
    _, batches, _ = read_run(tmp_path, start_run(tmp_path, VALIDATION="1:3"))
    assert batches == STEPS
    numbers = [int((tmp_path / f"{process}.txt").read_text()) for process in range(2)]
    assert 3 <= numbers[0] == numbers[1] < VALIDATION_STEPS
