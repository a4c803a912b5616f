"""Averages of the weights: the rule, what the model answers with, and what it trains on."""

import fractions

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_tasks import make_task

from keras_bert_suite import (
    EMA,
    FGM,
    SWA,
    CombinedTechniques,
    Ensemble,
    RDrop,
    TextClassifier,
    TrainingCheckpoint,
    attended_tokens,
    integrated_gradients,
)
from keras_bert_suite.heads.base.ensemble import members_of
from keras_bert_suite.serving.tensorflow_process import write_under_tensorflow

MOMENTUM = 0.9
BATCH_SIZE = 4


def make(technique, seed=0):
    keras.utils.set_random_seed(seed)
    task, (x, y) = make_task("texts")
    # The gradients of new weights are small.
    task.compile(keras.optimizers.SGD(5.0), technique=technique)
    return task, x, y


def read(weights):
    return [to_numpy(weight).copy() for weight in weights]


def assert_same(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def ema_as_written(steps):
    """The sum that begins with 0, and the correction of Adam, in float64."""
    total = 0.0
    for weight in steps:
        total = MOMENTUM * total + (1 - MOMENTUM) * weight
    return total / (1 - MOMENTUM ** len(steps))


def swa_as_written(steps):
    """The mean of the weights after the steps 2, 4 and 6; before, the weights."""
    return np.mean(steps[1::2], axis=0) if len(steps) > 1 else steps[-1]


@pytest.mark.parametrize(
    ("technique", "as_written"),
    [
        pytest.param(EMA(MOMENTUM), ema_as_written, marks=pytest.mark.every_backend),
        (SWA(first_step=2, every=2), swa_as_written),
    ],
    ids=["EMA", "SWA"],
)
def test_the_average_is_the_rule_and_training_goes_on_from_the_weights(technique, as_written):
    task, x, y = make(technique)
    plain, _, _ = make(None)
    plain.set_weights(task.get_weights())
    steps = []
    for number in range(5):
        rows = slice(number % 2 * BATCH_SIZE, (number % 2 + 1) * BATCH_SIZE)
        for model in (task, plain):
            keras.utils.set_random_seed(number)  # PyTorch draws dropout from it.
            model.train_on_batch(x[rows], y[rows])
        weights = read(task.weights)
        for got, wanted in zip(weights, read(plain.weights), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
        steps.append([weight.astype("float64") for weight in weights])
        averages = read(task.technique.averages)
        for got, *of_steps in zip(averages, *steps, strict=True):
            np.testing.assert_allclose(got, as_written(of_steps), rtol=1e-6, atol=1e-6)
        # Answers with the average, and leaves what is trained bit for bit.
        shown = task.predict_probabilities(x, verbose=0)
        task.evaluate(x, y, verbose=0)
        assert_same(read(task.weights), weights)
        assert_same(read(task.technique.averages), averages)
    # A hundred times the tolerance.
    assert max(np.abs(a - b).max() for a, b in zip(averages, steps[-1], strict=True)) > 1e-4
    plain.set_weights(averages)
    wanted = plain.predict_probabilities(x, verbose=0)
    np.testing.assert_allclose(shown, wanted, rtol=0, atol=1e-6)


def test_a_fit_validates_and_saves_the_average_and_the_next_goes_on_from_the_weights(tmp_path):
    task, x, y = make(EMA(MOMENTUM))
    whole, _, _ = make(EMA(MOMENTUM))
    whole.set_weights(task.get_weights())
    settings = {"batch_size": BATCH_SIZE, "shuffle": False, "verbose": 0}
    kept = keras.callbacks.ModelCheckpoint(tmp_path / "kept.weights.h5", save_weights_only=True)
    history = task.fit(x, y, validation_data=(x, y), callbacks=[kept], **settings).history
    average = read(task.weights)
    assert task.technique.is_shown
    np.testing.assert_allclose(
        history["val_loss"][-1], task.evaluate(x, y, verbose=0)[0], rtol=1e-5
    )
    task.save(tmp_path / "task.keras")
    task.save_to_preset(str(tmp_path / "preset"))
    again = keras.saving.load_model(tmp_path / "task.keras")
    opened = TextClassifier.from_preset(tmp_path / "preset")
    other, _, _ = make(None)
    other.load_weights(tmp_path / "kept.weights.h5")
    for model in (again, opened, other):
        assert_same(read(model.weights), average)
    whole.fit(x, y, epochs=2, **settings)
    for model in (task, again):
        model.fit(x, y, **settings)
        assert_same(read(model.weights), read(whole.weights))
        assert_same(read(model.technique.averages), read(whole.technique.averages))


class Kill(keras.callbacks.Callback):
    """Ends a `fit` by an error, after a batch of its first epoch or within its first validation."""

    def __init__(self, batch=None):
        super().__init__()
        self.batch = batch

    def on_train_batch_end(self, batch, logs=None):
        if batch == self.batch:
            raise KeyboardInterrupt

    def on_test_batch_end(self, batch, logs=None):
        raise KeyboardInterrupt


@pytest.mark.parametrize("combined", [False, True], ids=["alone", "combined"])
def test_a_killed_training_resumes_bit_for_bit(tmp_path, combined):
    """Killed within an epoch, before a batch is saved, and within a validation."""

    def train(name, *callbacks):
        technique = EMA(MOMENTUM)
        technique = CombinedTechniques([FGM(0.5), technique]) if combined else technique
        task, x, y = make(technique)
        every = 1 if callbacks else 100
        saved = TrainingCheckpoint(tmp_path / name, every, asynchronous=False)
        task.fit(
            x,
            y,
            validation_data=(x, y),
            epochs=3,
            batch_size=BATCH_SIZE,
            callbacks=[saved, *callbacks],
            verbose=0,
        )
        average = task.technique.parts[1] if combined else task.technique
        assert average.is_shown
        return [*read(task.weights), *read(average.averages)]

    for kill in (Kill(batch=1), Kill()):
        with pytest.raises(KeyboardInterrupt):
            train("killed", kill)
    assert_same(train("killed"), train("whole"))


def test_exports_and_explanations_have_the_average(monkeypatch, tmp_path):
    """Between two steps, as in a callback or in a loop of one's own."""
    task, x, y = make(EMA(MOMENTUM))
    for _ in range(3):
        task.train_on_batch(x, y)
    trained, average = read(task.weights), task.get_weights()
    assert max(np.abs(a - b).max() for a, b in zip(trained, average, strict=True)) > 1e-4
    seen = []

    def note(part, path):
        seen.append(read(part.weights))
        raise KeyboardInterrupt

    monkeypatch.setattr(keras.saving, "save_model", note)
    for exported in (task, Ensemble([task])):
        with pytest.raises(KeyboardInterrupt):
            write_under_tensorflow(
                lambda written, path: note(members_of(written)[0], path), exported, tmp_path
            )
        assert_same(seen.pop(), average)
    (found,) = integrated_gradients(task, x[:1], 0, steps=2)
    assert found.output == pytest.approx(task.predict(x[:1], verbose=0)[0, 0], abs=1e-6)
    (shown,) = attended_tokens(task, x[:1])
    assert_same(read(task.weights), trained)
    task.set_weights(average)
    np.testing.assert_allclose(shown.scores, attended_tokens(task, x[:1])[0].scores, atol=1e-6)


def test_early_stopping_restores_the_average_of_the_best_epoch():
    task, x, y = make(EMA(MOMENTUM))
    seen = []
    see = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(task.get_weights())
    )
    # The first epoch is the best.
    stop = keras.callbacks.EarlyStopping(
        "loss", mode="max", min_delta=1e9, patience=1, restore_best_weights=True
    )
    task.fit(x, y, epochs=3, batch_size=BATCH_SIZE, callbacks=[see, stop], verbose=0)
    assert len(seen) == 2
    assert_same(read(task.weights), seen[0])
    task.predict(x, verbose=0)
    assert_same(read(task.weights), seen[0])


@pytest.mark.parametrize("by", ["set_weights", "load_weights"])
def test_weights_that_are_set_begin_a_new_average(by, tmp_path):
    task, x, y = make(EMA(MOMENTUM))
    other, _, _ = make(None, seed=1)
    task.fit(x, y, batch_size=BATCH_SIZE, verbose=0)
    if by == "set_weights":
        task.set_weights(other.get_weights())
    else:
        other.save_weights(tmp_path / "other.weights.h5")
        task.load_weights(tmp_path / "other.weights.h5")
    assert_same(read(task.weights), read(other.weights))
    for model in (task, other):
        keras.utils.set_random_seed(2)
        model.train_on_batch(x, y)
    for kind in (task.weights, task.technique.averages):
        for got, wanted in zip(read(kind), read(other.weights), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


def test_weights_that_were_added_need_another_compile():
    task, x, y = make(EMA(MOMENTUM))
    task.fit(x, y, batch_size=BATCH_SIZE, verbose=0)
    task.quantize("int8")
    task.predict(x, verbose=0)
    with pytest.raises(ValueError, match="no average of weights that were added since `compile`"):
        task.fit(x, y, verbose=0)
    task.compile(technique=EMA(MOMENTUM))
    task.fit(x, y, batch_size=BATCH_SIZE, verbose=0)


def test_before_the_first_step_the_model_has_its_weights():
    task, x, _ = make(EMA())
    task.set_weights([weight + 1 for weight in task.get_weights()])
    wanted = read(task.weights)
    task.predict(x, verbose=0)
    assert_same(read(task.weights), wanted)


@pytest.mark.parametrize("kind", [np.float32, np.float64, fractions.Fraction])
def test_the_momentum_is_any_real_number(kind):
    assert EMA(kind(0.5)).momentum == 0.5


@pytest.mark.parametrize(
    ("make_technique", "says"),
    [
        (lambda: EMA(1.0), "momentum must be over 0 and below 1, got 1.0"),
        (lambda: EMA("0.9"), "momentum must be over 0 and below 1, got '0.9'"),
        (lambda: EMA(1), "momentum must be over 0 and below 1, got 1"),
        (lambda: SWA(0), "first_step must be an integer of at least 1, got 0"),
        (lambda: SWA(3, 0), "every must be an integer of at least 1, got 0"),
        (lambda: CombinedTechniques([EMA(), RDrop(), SWA(1)]), "EMA and SWA all average"),
    ],
)
def test_wrong_arguments(make_technique, says):
    with pytest.raises(ValueError, match=says):
        make_technique()


def test_weights_of_16_bits_are_refused():
    task, _ = make_task("texts", dtype="bfloat16")
    with pytest.raises(ValueError, match="averages weights in float32, and .* is bfloat16"):
        task.compile("sgd", technique=EMA())
