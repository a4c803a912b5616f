"""A checkpoint of several processes is there with all its pieces, or it is not there."""

import os
import threading

import keras
import numpy as np
import pytest
from child_process import finish, start

from keras_bert_suite.replicas import Group
from keras_bert_suite.runs import joint_checkpoints
from keras_bert_suite.runs.joint_checkpoints import JointCheckpoints
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_checkpoints import find_checkpoint, read_arrays, write_checkpoint
from keras_bert_suite.runs.variable_pieces import Pieces, join_pieces


def progress_at(batches):
    return Progress(first_step=0, seed=7, batches=batches, steps_per_epoch=10)


def pieces_of(process, batches=5):
    """The columns of a matrix that two processes share, and a scalar of the second."""
    import ml_dtypes

    kernel = np.arange(12, dtype="float32").reshape(3, 4) + batches
    arrays = {
        f"model/kernel@0,{2 * process}": np.ascontiguousarray(kernel[:, 2 * process :][:, :2]),
        f"model/half@{process}": np.full(1, process + batches, ml_dtypes.bfloat16),
    }
    if process:
        arrays["optimizer/iteration@"] = np.array(batches)
    return Pieces(arrays, {"model/kernel": [3, 4], "model/half": [2], "optimizer/iteration": []})


def write(directory, batches=5, attempt="a", processes=(0, 1)):
    """Writes the pieces of some of two processes at the same time. Returns the errors."""
    errors = []

    def write_one(process):
        try:
            checkpoints = JointCheckpoints(Group(process, 2), attempt)
            pieces = pieces_of(process, batches)
            assert checkpoints.write(directory, progress_at(batches), pieces, keep=2) == batches
        except OSError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=write_one, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_round_trip(tmp_path):
    import ml_dtypes

    for batches in (5, 6, 7):
        assert not write(tmp_path, batches)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-00000006", "step-00000007"]
    path, progress = find_checkpoint(tmp_path)
    assert progress == progress_at(7)
    arrays = read_arrays(path)
    np.testing.assert_array_equal(arrays["model/kernel"], np.arange(12).reshape(3, 4) + 7)
    np.testing.assert_array_equal(arrays["model/half"], np.array([7, 8], ml_dtypes.bfloat16))
    assert arrays["optimizer/iteration"] == 7 and len(arrays) == 3
    # A run goes on alone, and its checkpoints are of format 1 again.
    write_checkpoint(tmp_path, progress_at(8), arrays, keep=1)
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000008"]
    assert read_arrays(find_checkpoint(tmp_path)[0]).keys() == arrays.keys()


def test_every_flipped_bit_and_missing_piece_is_found(tmp_path):
    write(tmp_path, 5)
    write(tmp_path, 6)
    rng = np.random.default_rng(0)
    path = tmp_path / "step-00000006"
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        for position in rng.integers(0, len(content) - 1, 10):
            damaged = bytearray(content)
            damaged[position] ^= 1 << int(rng.integers(8))
            file.write_bytes(damaged)
            with pytest.warns(UserWarning, match="does not have the sha256"):
                assert find_checkpoint(tmp_path)[1].batches == 5
        file.unlink()
        with pytest.warns(UserWarning, match=f"{file.name} missing"):
            assert find_checkpoint(tmp_path)[1].batches == 5
        file.write_bytes(content)
    assert find_checkpoint(tmp_path)[1].batches == 6


def test_pieces_of_another_attempt_are_left_out(tmp_path, monkeypatch):
    """Of the first attempt, the second process has written; of the next one, the first."""
    monkeypatch.setattr(joint_checkpoints, "PATIENCE", 0.1)
    (late,) = write(tmp_path, attempt="a", processes=[1])
    assert "piece-0-of-2.safetensors is missing" in late
    (late,) = write(tmp_path, attempt="b", processes=[0])
    assert "piece-1-of-2.safetensors is missing" in late and "same folder" in late
    assert find_checkpoint(tmp_path) is None and not list(tmp_path.iterdir())


def test_a_variable_with_a_hole_is_refused(tmp_path):
    with pytest.raises(ValueError, match="lacks a part of model/kernel"):
        join_pieces([pieces_of(0)], tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.long("faults")
def test_kills(tmp_path, num_kills=300):
    """One, two or three writers, of which one is killed at a random moment, again and again."""
    output = finish(
        start(
            "runs/killed_writers.py",
            tmp_path,
            num_kills,
            num_devices=1,
            KERAS_BACKEND=keras.config.backend(),
        )
    )
    num_forward, num_waited = map(int, output.splitlines()[-1].split())
    assert num_forward >= num_waited >= num_kills // 5
