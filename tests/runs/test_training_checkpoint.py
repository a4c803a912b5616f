"""Interrupted, then resumed: the same training as one that was not."""

import os
import threading

import keras
import numpy as np
import pytest
import torch
from small_pretraining import (
    EPOCHS,
    STEPS,
    STEPS_PER_EPOCH,
    At,
    SmallBatches,
    all_arrays,
    assert_same,
    build_pretrainer,
    fit,
    interrupt,
    list_names,
)
from small_texts import TINY

from keras_bert_suite import AdamW, LinearWarmupDecay, TrainingCheckpoint


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Logs and all variables after EPOCHS, of the same command left alone."""
    task, checkpoint = build_pretrainer(), TrainingCheckpoint(tmp_path_factory.mktemp("alone"))
    return fit(task, checkpoint, validation_data=SmallBatches()), all_arrays(task)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "checkpoints"


@pytest.mark.parametrize(("stop", "every"), [(STEPS_PER_EPOCH + 1, 7), (STEPS_PER_EPOCH + 2, 2)])
def test_resumed_is_uninterrupted(directory, uninterrupted, stop, every):
    """From a checkpoint at the end of an epoch, before its validation, and from one within."""
    logs, arrays = uninterrupted
    validated = {"validation_data": SmallBatches()}
    with pytest.raises(KeyboardInterrupt):
        fit(
            build_pretrainer(),
            TrainingCheckpoint(directory, every=every),
            At(stop, interrupt),
            **validated,
        )
    task, checkpoint = build_pretrainer(), TrainingCheckpoint(directory, every=100)
    resumed = fit(task, checkpoint, **validated)
    assert_same(task, arrays)
    assert checkpoint.progress.batches == STEPS and not checkpoint.terminated
    assert resumed.keys() == logs.keys()
    for name, values in resumed.items():
        assert values == logs[name][-len(values) :]
    assert len(resumed["loss"]) == (EPOCHS if every == 7 else EPOCHS - 1)

    # The same command once more.
    again = build_pretrainer()
    assert fit(again, TrainingCheckpoint(directory)) == {}
    assert_same(again, arrays)


def test_a_finished_run_may_be_extended(directory):
    logs = []
    for epochs in (1, 2):
        logs.append(fit(build_pretrainer(), TrainingCheckpoint(directory), epochs=epochs))
    assert [len(log["loss"]) for log in logs] == [1, 1]


def test_an_extended_run_goes_on_before_its_last_validation(directory):
    """A validation that draws random numbers moves no state of the training."""

    class Draw(keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            torch.rand(1)

    def train(directory, epochs):
        task = build_pretrainer()
        task.optimizer.learning_rate = LinearWarmupDecay(1e-3, total_steps=100)
        checkpoint = TrainingCheckpoint(directory, every=100)
        fit(task, checkpoint, Draw(), validation_data=SmallBatches(), epochs=epochs)
        return task

    train(directory, 1)
    wanted = train(directory.with_name("other"), 2)
    assert_same(train(directory, 2), all_arrays(wanted))


def test_epochs_longer_than_the_data(directory):
    """Their length need not be a multiple of that of the data, either."""
    steps, arguments = 17, {"steps_per_epoch": 17, "epochs": 2}
    assert steps > STEPS_PER_EPOCH
    wanted = build_pretrainer()
    logs = fit(wanted, TrainingCheckpoint(directory.with_name("other")), **arguments)
    assert logs["first_label"] == [16, 33 - TINY["vocabulary_size"]]
    assert int(wanted.optimizer.iterations) == 2 * steps
    with pytest.raises(KeyboardInterrupt):
        fit(
            build_pretrainer(),
            TrainingCheckpoint(directory, every=1),
            At(steps + 9, interrupt),
            **arguments,
        )
    task, checkpoint = build_pretrainer(), TrainingCheckpoint(directory)
    resumed = fit(task, checkpoint, **arguments)
    assert checkpoint.progress.batches == 2 * steps
    assert resumed["loss"] == logs["loss"][1:] and resumed["first_label"] == logs["first_label"][1:]
    assert_same(task, all_arrays(wanted))


def test_rows_in_memory_and_accumulated_gradients(directory):
    """Their order is that of the run, also when NumPy's generator has moved on."""
    x, y, weights = SmallBatches()[0]
    rows = 10
    x = {name: np.resize(array, (rows, array.shape[1])) for name, array in x.items()}
    x["token_ids"] = np.random.default_rng(0).integers(5, 28, x["token_ids"].shape, "int32")
    y, weights = np.resize(y["mlm"], (rows, 2)), np.ones((rows, 2), "float32")

    def train(*callbacks):
        task = build_pretrainer(gradient_accumulation_steps=2, momentum_dtype="bfloat16")
        keras.utils.set_random_seed(int(callbacks != ()))
        task.fit(
            x, {"mlm": y}, sample_weight={"mlm": weights}, batch_size=2, epochs=3, verbose=0,
            callbacks=list(callbacks),
        )  # fmt: skip
        return task

    with pytest.raises(KeyboardInterrupt):
        train(TrainingCheckpoint(directory, every=1), At(8, interrupt))
    resumed = train(TrainingCheckpoint(directory, every=1))
    other = directory.with_name("other")
    assert_same(resumed, all_arrays(train(TrainingCheckpoint(other))))


def test_in_another_thread(directory, uninterrupted):
    task = build_pretrainer()
    thread = threading.Thread(target=fit, args=(task, TrainingCheckpoint(directory)))
    thread.start()
    thread.join()
    assert_same(task, uninterrupted[1])


def test_saved_every_so_many_batches_of_the_run(directory):
    fit(build_pretrainer(), TrainingCheckpoint(directory, every=5, keep=100), epochs=3)
    assert list_names(directory) == [f"step-{n:08d}" for n in (5, 10, 15, 20, 21)]


def test_the_end_of_a_resumed_epoch_is_not_the_end_another_asks_for(directory):
    class StopInSecondEpoch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = epoch == 1

    with pytest.raises(KeyboardInterrupt):
        fit(
            build_pretrainer(),
            TrainingCheckpoint(directory, every=1),
            At(STEPS_PER_EPOCH + 2, interrupt),
        )
    checkpoint = TrainingCheckpoint(directory)
    fit(build_pretrainer(), StopInSecondEpoch(), checkpoint)
    assert checkpoint.progress.batches == 2 * STEPS_PER_EPOCH


def test_bad_batches_are_skipped_and_counted(directory, uninterrupted):
    checkpoint = TrainingCheckpoint(directory, max_skipped=3)
    task = build_pretrainer()
    logs = fit(task, checkpoint, data=SmallBatches(bad={2, 9, 10}))
    assert logs["skipped_steps"] == [1, 3, 3, 3] and checkpoint.skipped == 3
    assert int(task.optimizer.iterations) == STEPS - 3
    assert all(np.isfinite(array).all() for array in all_arrays(task))
    assert np.isfinite(logs["loss"]).all()


@pytest.mark.parametrize(("dtype", "steps"), [("float32", 3), ("mixed_float16", 4)])
def test_skipped_steps_are_counted_in_steps(directory, dtype, steps):
    """Of accumulated batches the whole group is one, and may be more than `max_skipped`.

    A loss scale drops a batch alone, and then the last batches are no whole group.
    """
    checkpoint = TrainingCheckpoint(directory, max_skipped=2)
    task = build_pretrainer(dtype, gradient_accumulation_steps=3)
    logs = fit(task, checkpoint, data=SmallBatches(bad={1}), epochs=2)
    assert logs["skipped_steps"] == [1, 1] and int(task.optimizer.iterations) == steps


@pytest.mark.backend("jax")
def test_several_steps_in_one_execution(directory):
    """Keras calls the callback after the last of them, which need not be a multiple of `every`."""
    task = build_pretrainer()
    task.compile(AdamW(1e-3), steps_per_execution=STEPS_PER_EPOCH)
    fit(task, TrainingCheckpoint(directory, every=5, keep=100))
    assert list_names(directory) == [f"step-{n:08d}" for n in (7, 14, 21, 28)]


def test_a_run_of_bad_batches_stops_the_training(directory):
    checkpoint = TrainingCheckpoint(directory, every=4, max_skipped=3)
    task = build_pretrainer()
    with pytest.raises(FloatingPointError, match="No step was taken in batches 6 to 9 of the run"):
        fit(task, checkpoint, data=SmallBatches(bad=range(6, 100)))
    assert list_names(directory) == ["step-00000004", "step-00000008"]
    # The same command, and other data: it goes on from there.
    task = build_pretrainer()
    fit(task, TrainingCheckpoint(directory))
    assert int(task.optimizer.iterations) == STEPS - 2


def test_weights_that_are_not_finite_are_not_saved(directory):
    """Keras' own optimizers do not skip."""
    task = build_pretrainer()
    task.compile(keras.optimizers.SGD(0.1), loss=task.loss)
    with pytest.raises(FloatingPointError, match="holds values that are not finite"):
        fit(task, TrainingCheckpoint(directory, every=2), data=SmallBatches(bad={3}))
    assert list_names(directory) == ["step-00000002"]


def test_a_full_disk(directory, uninterrupted):
    """While it is full, which a limit on files stands for, training goes on with what it had."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    first = directory / "step-00000005"

    def fill_disk():
        size = (first / "variables.safetensors").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))

    task = build_pretrainer()
    checkpoint = TrainingCheckpoint(directory, every=5, asynchronous=False)
    try:
        with pytest.warns(UserWarning, match="could not be written.*File too large.*Make room"):
            with pytest.raises(OSError, match="File too large"):
                fit(task, checkpoint, At(7, fill_disk))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_same(task, uninterrupted[1])
    # Nothing half written is left, and what was there before is whole.
    assert os.listdir(directory) == [first.name]
    task, checkpoint = build_pretrainer(), TrainingCheckpoint(directory)
    assert checkpoint.find_progress(None).batches == 5
    fit(task, checkpoint)
    assert_same(task, uninterrupted[1])


def test_a_disk_that_is_full_for_a_while(directory, uninterrupted):
    """Later checkpoints make up for the one that could not be written."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit_files(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    task = build_pretrainer()
    checkpoint = TrainingCheckpoint(directory, every=5, asynchronous=False)
    try:
        with pytest.warns(UserWarning, match="could not be written.*File too large"):
            full, free = At(7, lambda: limit_files(1000)), At(12, lambda: limit_files(before[0]))
            fit(task, checkpoint, full, free)
    finally:
        limit_files(before[0])
    assert_same(task, uninterrupted[1])
    assert list_names(directory) == [f"step-{n:08d}" for n in (20, 25, STEPS)]


def test_what_cannot_be_resumed_is_refused(directory):
    task = build_pretrainer()
    stream = SmallBatches().to_iter_dataset()
    with pytest.raises(ValueError, match="grain.MapDataset of batches, got"):
        fit(task, TrainingCheckpoint(directory), data=stream, steps_per_epoch=3)
    with pytest.raises(ValueError, match="repeats without end. Set steps_per_epoch"):
        task.compile(keras.optimizers.SGD(0.1), loss=task.loss)
        fit(task, TrainingCheckpoint(directory), data=SmallBatches().repeat())
    task.compile(keras.optimizers.SGD(0.1), loss=task.loss, steps_per_execution=2)
    message = (
        "steps_per_execution=2 must divide the 7 batches of an epoch and the 0 batches that .*=1"
    )
    with pytest.raises(ValueError, match=message):
        fit(task, TrainingCheckpoint(directory))
    task.compile(keras.optimizers.SGD(0.1), loss=task.loss)
    with pytest.raises(RuntimeError, match="without a second one"):
        fit(task, TrainingCheckpoint(directory), TrainingCheckpoint(directory))
    for name in ("every", "keep", "max_skipped"):
        with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1"):
            TrainingCheckpoint(directory, **{name: -1})


def test_other_data_and_other_models_are_refused(directory):
    fit(build_pretrainer(), TrainingCheckpoint(directory), epochs=1)
    with pytest.raises(ValueError, match="with 7 batches an epoch, got 5"):
        fit(build_pretrainer(), TrainingCheckpoint(directory), steps_per_epoch=5)
    task = build_pretrainer()
    task.compile(keras.optimizers.SGD(0.1), loss=task.loss)
    with pytest.raises(ValueError, match="the optimizer was AdamW and is SGD"):
        fit(task, TrainingCheckpoint(directory))
    task = build_pretrainer(momentum_dtype="bfloat16")
    with pytest.raises(ValueError, match=r"_momentum: float32 .*, wanted bfloat16 "):
        fit(task, TrainingCheckpoint(directory))
