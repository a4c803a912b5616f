"""A training that was killed under one backend goes on under another."""

import signal

import keras
import numpy as np
import pytest
from child_process import run
from small_pretraining import STEPS, StepLog, all_arrays, build_pretrainer, fit, read_step_log

from keras_bert_suite import TrainingCheckpoint


@pytest.mark.long("faults")
@pytest.mark.every_backend
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_under_another(tmp_path):
    other = "jax" if keras.config.backend() == "torch" else "torch"
    pytest.importorskip(other)
    process = run("training/other_backend.py", tmp_path, KERAS_BACKEND=other)
    assert process.returncode == -signal.SIGKILL, process.stderr
    ((_, wanted),) = read_step_log(tmp_path / "log")

    task, checkpoint = build_pretrainer(dropout=0.0), TrainingCheckpoint(tmp_path / "killed")
    fit(task, checkpoint, StepLog(tmp_path / "resumed", checkpoint))
    ((first, found),) = read_step_log(tmp_path / "resumed")
    assert (first, len(found)) == (10, STEPS - 10)
    for (number, rest), (other_number, other_rest) in zip(found, wanted[10:], strict=True):
        (label, loss), (other_label, other_loss) = rest.split(), other_rest.split()
        assert (number, label) == (other_number, other_label)
        assert float.fromhex(loss) == pytest.approx(float.fromhex(other_loss), rel=1e-4)

    # What the other backend came to, by the same numbers, is one more checkpoint to go on from.
    twin = build_pretrainer(dropout=0.0)
    assert fit(twin, TrainingCheckpoint(tmp_path / "uninterrupted")) == {}
    assert int(task.optimizer.iterations) == int(twin.optimizer.iterations) == STEPS
    for array, other_array in zip(all_arrays(task), all_arrays(twin), strict=True):
        np.testing.assert_allclose(array, other_array, atol=1e-4)
