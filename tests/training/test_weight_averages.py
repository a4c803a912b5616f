"""Averages of the weights: the rule, what the model answers with, and what it trains on."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_tasks import make_task

from keras_bert_suite import EMA, SWA, TextClassifier, TrainingCheckpoint

MOMENTUM = 0.9
BATCH_SIZE = 4


def make(technique, seed=0):
    keras.utils.set_random_seed(seed)
    task, (x, y) = make_task("texts")
    # A rate at which the weights move by more than the tolerance.
    task.compile(keras.optimizers.SGD(0.5), technique=technique)
    return task, x, y


def read(weights):
    return [to_numpy(weight).copy() for weight in weights]


def ema_as_written(steps):
    """The sum that begins with 0, and the correction of Adam, in float64."""
    total = 0.0
    for weight in steps:
        total = MOMENTUM * total + (1 - MOMENTUM) * weight
    return total / (1 - MOMENTUM ** len(steps))


def swa_as_written(steps):
    """The mean of the weights after the steps 2, 4 and 6; before, the weights."""
    return np.mean(steps[1::2], axis=0) if len(steps) > 1 else steps[-1]


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("technique", "as_written"),
    [(EMA(MOMENTUM), ema_as_written), (SWA(first_step=2, every=2), swa_as_written)],
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
            np.testing.assert_allclose(got, as_written(of_steps), rtol=0, atol=1e-6)
        # Answers with the average, and leaves what is trained bit for bit.
        shown = task.predict_probabilities(x, verbose=0)
        task.evaluate(x, y, verbose=0)
        for kept in (read(task.weights), read(task.technique.averages)):
            for got, before in zip(kept, weights, strict=True):
                np.testing.assert_array_equal(got, before)
            weights = averages
    assert max(np.abs(a - b).max() for a, b in zip(averages, steps[-1], strict=True)) > 1e-3
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
        for got, wanted in zip(read(model.weights), average, strict=True):
            np.testing.assert_array_equal(got, wanted)
    whole.fit(x, y, epochs=2, **settings)
    for model in (task, again):
        model.fit(x, y, **settings)
        for got, wanted in zip(read(model.weights), read(whole.weights), strict=True):
            np.testing.assert_array_equal(got, wanted)
        for got, wanted in zip(
            read(model.technique.averages), read(whole.technique.averages), strict=True
        ):
            np.testing.assert_array_equal(got, wanted)


def test_a_training_resumes_bit_for_bit(tmp_path):
    settings = {"batch_size": BATCH_SIZE, "verbose": 0}
    ends = []
    for name, epochs in (("whole", (3,)), ("parts", (1, 3))):
        for end in epochs:
            task, x, y = make(EMA(MOMENTUM))
            callbacks = [TrainingCheckpoint(tmp_path / name)]
            task.fit(x, y, validation_data=(x, y), epochs=end, callbacks=callbacks, **settings)
        ends.append([*read(task.weights), *read(task.technique.averages)])
    for got, wanted in zip(*ends, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_before_the_first_step_the_model_has_its_weights():
    task, x, _ = make(EMA())
    task.set_weights([weight + 1 for weight in task.get_weights()])
    wanted = read(task.weights)
    task.predict(x, verbose=0)
    for got, weight in zip(read(task.weights), wanted, strict=True):
        np.testing.assert_array_equal(got, weight)


@pytest.mark.parametrize(
    ("make_technique", "says"),
    [
        (lambda: EMA(1.0), "momentum must be over 0 and below 1, got 1.0"),
        (lambda: EMA(1), "momentum must be over 0 and below 1, got 1"),
        (lambda: SWA(0), "first_step must be an integer of at least 1, got 0"),
        (lambda: SWA(3, 0), "every must be an integer of at least 1, got 0"),
    ],
)
def test_wrong_arguments(make_technique, says):
    with pytest.raises(ValueError, match=says):
        make_technique()


def test_weights_of_16_bits_are_refused():
    task, _ = make_task("texts", dtype="bfloat16")
    with pytest.raises(ValueError, match="averages weights in float32, and .* is bfloat16"):
        task.compile("sgd", technique=EMA())
