"""A resumed training has the callbacks of an uninterrupted one: their state is kept."""

import keras
import numpy as np
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
    interrupt,
    list_names,
)
from tables import left_out

from keras_bert_suite import AdamW, TrainingCheckpoint

EPOCHS = 5


class AverageWeight(keras.callbacks.Callback):
    """A callback of a user: a moving average of one weight, and a count of batches."""

    def __init__(self):
        super().__init__()
        self.average, self.batches, self.places = None, 0, {}

    def on_train_begin(self, logs=None):
        self.average = np.zeros(self.weight.shape, self.weight.dtype)

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        self.average = 0.9 * self.average + 0.1 * self.weight
        self.places[self.batches] = (batch, float(self.average.sum()))

    @property
    def weight(self):
        if keras.config.backend() == "jax":
            self.model.jax_state_sync()
        return keras.ops.convert_to_numpy(self.model.trainable_weights[0])


class KeptAverage(AverageWeight):
    def get_state(self):
        return {"average": self.average, "counts": [self.batches, np.int64(1)], "of": self.places}

    def set_state(self, state):
        assert state["counts"][1] == 1
        self.average, self.batches = state["average"], state["counts"][0]
        self.places = state["of"]


class InValidation(OfOneStart):
    """Calls `function` in one validation, counted from 1."""

    def __init__(self, number, function):
        super().__init__()
        self._left, self._function = number, function

    def on_test_begin(self, logs=None):
        self._left -= 1
        if self._left == 0:
            self._function()


def make_callbacks(folder):
    """Callbacks of Keras and of a user. No loss is better than the first by so much."""
    return [
        keras.callbacks.ReduceLROnPlateau(factor=0.5, patience=1, min_delta=1.0, cooldown=2),
        keras.callbacks.EarlyStopping(patience=3, min_delta=1.0, restore_best_weights=True),
        *(
            keras.callbacks.ModelCheckpoint(f"{folder}/{name}", save_weights_only=True, **which)
            for name, which in (
                ("{epoch}.weights.h5", {"save_best_only": True}),
                ("{epoch}-{batch}.weights.h5", {"save_freq": 10}),
            )
        ),
        # As Keras' example has it: each epoch multiplies the rate of the one before.
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.9 * rate),
        KeptAverage(),
    ]


def start(folder, every, *others, **arguments):
    """Starts the command once; returns the task, its callbacks and its logs."""
    task, callbacks = build_pretrainer(), make_callbacks(folder)
    task.compile(AdamW(1e-3), loss=task.loss)
    checkpoint = TrainingCheckpoint(folder / "run", every=every)
    arguments = {"epochs": EPOCHS, "validation_data": SmallBatches(), **arguments}
    logs = fit(task, checkpoint, *callbacks, *others, **arguments)
    return task, callbacks, logs


def see(callbacks):
    """What the callbacks have counted."""
    plateau, stopper, best, every, _, average = callbacks
    return {
        "plateau": (plateau.best, plateau.wait, plateau.cooldown_counter),
        "stopper": (stopper.best, stopper.wait, stopper.best_epoch, stopper.stopped_epoch),
        "best": best.best,
        "every": every._batches_seen_since_last_saving,
        "average": (average.batches, average.average.tolist(), average.places),
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    task, callbacks, logs = start(folder, 100)
    assert callbacks[1].stopped_epoch == EPOCHS - 2, "the training stops early"
    return all_arrays(task), see(callbacks), logs, list_names(folder)


@pytest.mark.parametrize(
    ("every", "interruption"),
    [
        # Other kills are in `test_killed_again_and_again`.
        pytest.param(7, InValidation(4, interrupt), id="in the last validation"),
        *(
            pytest.param(every, interruption, id=moment, marks=left_out("faults"))
            for every, interruption, moment in (
                (3, At(STEPS_PER_EPOCH + 6, interrupt), "within an epoch"),
                (1, At(2 * STEPS_PER_EPOCH, interrupt), "before the end of an epoch"),
                (7, InValidation(3, interrupt), "in a validation"),
                (14, At(2 * STEPS_PER_EPOCH + 1, interrupt), "after a validation"),
            )
        ),
    ],
)
def test_resumed_is_uninterrupted(tmp_path, uninterrupted, every, interruption):
    arrays, counts, logs, names = uninterrupted
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, every, interruption)
    task, callbacks, resumed = start(tmp_path, 100)
    assert_same(task, arrays)
    assert see(callbacks) == counts
    assert list_names(tmp_path) == names
    # The rate is among the logs.
    for name, values in logs.items():
        assert resumed[name] == values[-len(resumed[name]) :]


def test_killed_again_and_again(tmp_path):
    """Each start gets five batches further."""
    wanted, counts, _ = start(tmp_path / "alone", 100, epochs=2)
    counts = see(counts)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            start(tmp_path / "killed", 1, At(6, interrupt), epochs=2)
    task, callbacks, _ = start(tmp_path / "killed", 1, epochs=2)
    assert see(callbacks) == counts
    assert_same(task, all_arrays(wanted))


def train(directory, *callbacks, every=100, **arguments):
    """One start with other callbacks."""
    task = build_pretrainer()
    logs = fit(task, TrainingCheckpoint(directory, every=every), *callbacks, **arguments)
    return task, logs


def stop_early(patience=1, monitor="loss"):
    return keras.callbacks.EarlyStopping(
        monitor, mode="min", min_delta=9.0, patience=patience, restore_best_weights=True
    )


@pytest.mark.parametrize("every", [STEPS_PER_EPOCH, 100])
def test_a_training_that_was_stopped_early_is_finished(tmp_path, capsys, every):
    """Also if the last epoch had a checkpoint before its validation."""
    wanted, logs = train(tmp_path, stop_early(), every=every)
    assert len(logs["loss"]) == 2
    task, logs = train(tmp_path, stop_early(), verbose=2)
    assert logs == {} and "was stopped early by a callback" in capsys.readouterr().out
    # Keras gives it the weights of its best epoch, not of its last.
    assert_same(task, all_arrays(wanted))
    # With more patience the training goes on. It does so without the callback, too.
    assert len(train(tmp_path, stop_early(patience=2))[1]["loss"]) == 1
    assert len(train(tmp_path)[1]["loss"]) == 1


def test_a_callback_that_stops_within_an_epoch(tmp_path):
    """Keras ends the epoch then. The run that resumes ends it again, so its state is from before.

    A limit of time is such a callback.
    """

    class EpochCount(keras.callbacks.Callback):
        epochs = 0

        def on_epoch_end(self, epoch, logs=None):
            self.epochs += 1

        def get_state(self):
            return self.epochs

        def set_state(self, state):
            self.epochs = state

    def stop():
        stopper.model.stop_training = True

    stopper = At(STEPS_PER_EPOCH + 3, stop)
    train(tmp_path, EpochCount(), stopper)
    assert list_names(tmp_path) == [f"step-{STEPS_PER_EPOCH + 3:08d}"]
    count = EpochCount()
    train(tmp_path, count, epochs=3)
    assert count.epochs == 3


def test_what_no_checkpoint_holds_is_named_once(tmp_path):
    log, average = keras.callbacks.LambdaCallback(), AverageWeight()
    with pytest.warns(UserWarning) as caught:
        train(tmp_path, average, log, OfOneStart(), keras.callbacks.TerminateOnNaN(), every=2)
    (message,) = [str(w.message) for w in caught if w.category is UserWarning]
    assert "AverageWeight (average, batches, places). After an interruption they beg" in message


def test_a_state_of_another_kind_is_refused(tmp_path):
    class Bad(OfOneStart):
        def get_state(self):
            return {"when": self}

    with pytest.raises(TypeError, match="holds a Bad at callbacks/Bad/when. .* must return num"):
        train(tmp_path, Bad(), epochs=1)


def test_callbacks_without_a_state_are_named(tmp_path):
    """A new callback, and one that watches another number."""
    train(tmp_path, stop_early(patience=5), epochs=1)
    match = r"no state of EarlyStopping \(it has watched loss\), KeptAverage: such a callback beg"
    with pytest.warns(UserWarning, match=match):
        train(tmp_path, stop_early(5, "val_loss"), KeptAverage(), epochs=1)
