"""A training killed at random moments is the one that was never killed, bit for bit."""

import os

import keras
import numpy as np
import pytest
from child_process import run
from small_pretraining import STEPS_PER_EPOCH, read_step_log
from small_texts import TINY

STEPS, EVERY = 40 * STEPS_PER_EPOCH, 3

#: backend -> number of kills, and how long to wait for one at most, in seconds. JAX and
#: TensorFlow compile anew at every start, so that PyTorch takes most.
KILLS = {"torch": (25, 0.6), "jax": (4, 1.0), "tensorflow": (4, 1.5)}


@pytest.mark.long("faults")
@pytest.mark.every_backend
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_kills(tmp_path):
    num_kills, seconds = KILLS[keras.config.backend()]
    process = run("runs/killed_training.py", tmp_path, num_kills, seconds)
    assert process.returncode == 0, process.stderr
    kills, runs, failures = map(int, process.stdout.split())
    assert failures == 0, process.stderr
    assert kills == num_kills

    ((_, steps),) = read_step_log(tmp_path / "uninterrupted" / "log")
    assert [number for number, _ in steps] == list(range(1, STEPS + 1))
    for number, rest in steps:
        assert int(rest.split()[0]) == (number - 1) % TINY["vocabulary_size"]
    wanted = dict(steps)
    final = np.load(tmp_path / "uninterrupted" / "final.npz")
    for number_of_run in range(runs):
        done = 0
        for first, steps in read_step_log(tmp_path / f"run-{number_of_run}" / "log"):
            # No batch is left out; none is trained on again but those since the last checkpoint,
            # while another may have been on its way to the disk.
            assert max(0, done - 2 * EVERY) <= first <= done
            assert first % EVERY == 0 or first == STEPS
            assert [number for number, _ in steps] == list(range(first + 1, first + 1 + len(steps)))
            for number, rest in steps:
                assert rest == wanted[number], f"run {number_of_run}, batch {number}"
            done = max(done, first + len(steps))
        assert done == STEPS
        found = np.load(tmp_path / f"run-{number_of_run}" / "final.npz")
        for name in final.files:
            np.testing.assert_array_equal(found[name], final[name])
