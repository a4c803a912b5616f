"""SIGTERM ends a training soon, and what is left is as if it had never come."""

import os
import signal

import keras
import pytest
from small_pretraining import (
    STEPS_PER_EPOCH,
    At,
    OfOneStart,
    SmallBatches,
    all_arrays,
    assert_same,
    build_pretrainer,
    fit,
    list_names,
)

from keras_bert_suite import TrainingCheckpoint


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


class Validations(OfOneStart):
    """Counts batches of validations, and calls `function` at the end of one of them."""

    def __init__(self, batch=None, function=None):
        super().__init__()
        self.batches, self._batch, self._function = 0, batch, function

    def on_test_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.batches == self._batch:
            self._function()


def train(directory, *callbacks):
    """One start of the command, with a log in CSV beside the checkpoints."""
    task, checkpoint = build_pretrainer(), TrainingCheckpoint(directory, every=100)
    log = keras.callbacks.CSVLogger(directory.with_suffix(".csv"), append=True)
    fit(task, checkpoint, log, *callbacks, validation_data=SmallBatches())
    return task, checkpoint


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Lines of the log and all variables of a run left alone."""
    directory = tmp_path_factory.mktemp("alone") / "run"
    task, _ = train(directory)
    return read_log(directory), all_arrays(task)


def read_log(directory):
    return directory.with_suffix(".csv").read_text().splitlines()


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "run"


def test_within_an_epoch(directory, uninterrupted):
    before, validations = signal.getsignal(signal.SIGTERM), Validations()
    _, checkpoint = train(directory, At(STEPS_PER_EPOCH + 3, terminate), validations)
    assert checkpoint.terminated
    assert signal.getsignal(signal.SIGTERM) == before
    # The signal came after the checkpoint had seen the batch; it ends the one after it.
    assert list_names(directory) == [f"step-{STEPS_PER_EPOCH + 4:08d}"]
    # The epoch that was cut short is neither validated nor logged.
    assert validations.batches == STEPS_PER_EPOCH
    logs, arrays = uninterrupted
    assert read_log(directory) == logs[:2]
    task, checkpoint = train(directory)
    assert not checkpoint.terminated
    assert_same(task, arrays)
    assert read_log(directory) == logs


@pytest.mark.long("faults")
def test_in_a_validation(directory, uninterrupted):
    validations = Validations(STEPS_PER_EPOCH + 2, terminate)
    _, checkpoint = train(directory, validations)
    assert checkpoint.terminated and checkpoint.progress.batches == 2 * STEPS_PER_EPOCH
    assert validations.batches <= STEPS_PER_EPOCH + 3
    logs, arrays = uninterrupted
    # The means over some of the batches are not written.
    assert read_log(directory) == logs[:2]
    task, _ = train(directory)
    assert_same(task, arrays)
    assert read_log(directory) == logs


def test_at_the_end_of_an_epoch(directory, uninterrupted):
    """The next start validates the epoch and logs it, before it goes on."""
    validations = Validations()
    task, checkpoint = train(directory, At(STEPS_PER_EPOCH - 1, terminate), validations)
    assert checkpoint.terminated and validations.batches == 0
    assert read_log(directory) == []
    # It is over: another evaluation is left alone.
    task.evaluate(SmallBatches(), callbacks=[checkpoint, validations], verbose=0)
    assert validations.batches == STEPS_PER_EPOCH
    train(directory)
    assert read_log(directory) == uninterrupted[0]
