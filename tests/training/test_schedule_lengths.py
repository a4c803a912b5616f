"""The rate that the steps of a compiled `fit` see, read from how far the weights decay."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_suite import AdamW, LinearWarmupDecay
from keras_bert_suite.training.schedule_lengths import open_schedule_end, set_schedule_length

PEAK = 0.1


@pytest.fixture
def model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="dense")])
    model.layers[0].kernel.assign(np.ones((2, 3)))
    return model


def compile_for_decay(model, optimizer):
    """A loss without a gradient: a step multiplies the kernel by 1 - rate."""
    model.compile(optimizer, loss=lambda labels, outputs: 0.0 * ops.sum(outputs, axis=-1))


def fit(model, num_batches, **arguments):
    """Trains; returns what the kernel was multiplied by."""
    before = ops.convert_to_numpy(model.layers[0].kernel).copy()
    x = np.ones((num_batches, 2), "float32")
    model.fit(x, x[:, :1], batch_size=1, verbose=0, **arguments)
    (ratio,) = np.unique(ops.convert_to_numpy(model.layers[0].kernel) / before)
    return ratio


def rates_of(num_steps, warmup):
    """Google's, literally."""
    return [PEAK * (i / warmup if i < warmup else 1 - i / num_steps) for i in range(num_steps)]


def decays_by(rates):
    return pytest.approx(np.prod([1 - rate for rate in rates]), rel=1e-5)


@pytest.mark.parametrize("total_steps", [10, None])
def test_steps_are_updates(model, total_steps):
    """Of 5 batches each. The rate was 0 after 2 of 10 steps when batches were counted."""
    schedule = LinearWarmupDecay(PEAK, total_steps, warmup_steps=2)
    optimizer = AdamW(schedule, weight_decay=1.0, gradient_accumulation_steps=5)
    compile_for_decay(model, optimizer)
    set_schedule_length(model, first_step=0, num_batches=50)
    assert fit(model, num_batches=50) == decays_by(rates_of(10, 2))
    assert int(optimizer.iterations) == 10 and float(optimizer.learning_rate) == 0
    if total_steps is None:
        set_schedule_length(model, first_step=10, num_batches=20)
        assert fit(model, num_batches=20) == decays_by(rates_of(4, 2))


@pytest.mark.parametrize("total_steps", [4, None])
def test_so_do_keras_own_optimizers_count(model, total_steps):
    schedule = LinearWarmupDecay(PEAK, total_steps, warmup_steps=0)
    optimizer = keras.optimizers.AdamW(
        schedule, weight_decay=1.0, gradient_accumulation_steps=3, epsilon=1.0
    )
    compile_for_decay(model, optimizer)
    set_schedule_length(model, first_step=0, num_batches=12)
    assert fit(model, num_batches=12) == decays_by(rates_of(4, 0))


def test_fewer_batches_than_a_step_takes(model):
    optimizer = AdamW(LinearWarmupDecay(PEAK), weight_decay=1.0, gradient_accumulation_steps=5)
    compile_for_decay(model, optimizer)
    set_schedule_length(model, first_step=0, num_batches=3)
    assert fit(model, num_batches=3) == 1
    # Callbacks log the rate of the step that was not taken.
    assert float(optimizer.learning_rate) == pytest.approx(PEAK)


@pytest.mark.parametrize("total_steps", [None, 4])
def test_a_callback_cannot_set_the_rate_of_a_schedule(model, total_steps):
    compile_for_decay(model, AdamW(LinearWarmupDecay(PEAK, total_steps)))
    error, message = TypeError, "its learning rate is not settable"
    if keras.config.backend() == "tensorflow" and total_steps is None:
        # It reads the rate before it sets it.
        error, message = ValueError, "does not know its length"
    with pytest.raises(error, match=message):
        model.optimizer.learning_rate = PEAK / 4


@pytest.mark.every_backend
def test_a_compiled_step_sees_another_length(model):
    """It is not compiled anew. JAX would take the old step from its cache as long as it is held."""
    optimizer = AdamW(LinearWarmupDecay(PEAK, warmup_steps=0), weight_decay=1.0)
    compile_for_decay(model, optimizer)
    set_schedule_length(model, 0, 4)
    assert fit(model, 4) == decays_by(rates_of(4, 0))
    step = model.train_function
    set_schedule_length(model, 4, 10)
    assert fit(model, 10) == decays_by(rates_of(10, 0))
    assert model.train_function is step
    optimizer.learning_rate = LinearWarmupDecay(PEAK / 2, total_steps=18, warmup_steps=16)
    set_schedule_length(model, 14, 4)
    assert fit(model, 4) == decays_by(
        [PEAK / 2 * rate for rate in (14 / 16, 15 / 16, 1 / 9, 1 / 18)]
    )


def test_another_schedule_can_be_assigned():
    schedule = LinearWarmupDecay(PEAK)
    optimizer = AdamW(schedule)
    schedule.set_length(0, 4)
    optimizer.learning_rate = LinearWarmupDecay(PEAK, total_steps=2, warmup_steps=0)
    assert float(optimizer.learning_rate) == pytest.approx(PEAK)


def test_without_an_end_the_rate_stays_at_the_peak(model):
    """Of `fit` before, of which the last rate is 0, nothing is left."""
    optimizer = AdamW(LinearWarmupDecay(PEAK), weight_decay=1.0)
    compile_for_decay(model, optimizer)
    set_schedule_length(model, 0, 1)
    fit(model, 1)
    open_schedule_end(model)
    assert fit(model, 3) == decays_by([PEAK] * 3)
    step = model.train_function
    open_schedule_end(model)
    assert model.train_function is step


def test_without_an_end_the_rate_rises_over_the_warmup_steps(model):
    compile_for_decay(model, AdamW(LinearWarmupDecay(PEAK, warmup_steps=2), weight_decay=1.0))
    open_schedule_end(model)
    assert fit(model, 3) == decays_by([0, PEAK / 2, PEAK])


def test_an_unknown_length(model):
    compile_for_decay(model, AdamW(LinearWarmupDecay(PEAK)))
    with pytest.raises(ValueError, match="Pass `steps_per_epoch`, or compile with"):
        set_schedule_length(model, 0, None)
    compile_for_decay(model, AdamW(LinearWarmupDecay(PEAK, total_steps=3)))
    set_schedule_length(model, 0, None)
