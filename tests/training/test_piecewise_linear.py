"""Against the rule of bert4keras, and against the counting of updates."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_tasks import make_task

from keras_bert_suite import AdamW, PiecewiseLinear


def bert4keras_share(t, schedule):
    """bert4keras/backend.py: `piecewise_linear`, transcribed for one number."""
    schedule = sorted(schedule.items())
    if schedule[0][0] != 0:
        schedule = [(0, 0.0), *schedule]
    x = schedule[0][1]
    for i in range(len(schedule)):
        begin, x_begin = schedule[i][0], x
        if i != len(schedule) - 1:
            dx = schedule[i + 1][1] - schedule[i][1]
            dt = schedule[i + 1][0] - schedule[i][0]
            x = schedule[i][1] + 1.0 * dx / dt * (t - begin)
        else:
            x = schedule[i][1]
        x = x if t >= begin else x_begin
    return x


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "points", [{10: 1, 20: 0.1}, {0: 1.0}, {7: 1.0}, {0: 0.5, 4: 1.0, 9: 1.0, 30: 0.0}]
)
def test_equals_bert4keras(points):
    schedule = PiecewiseLinear(2e-5, points)
    for step in range(35):
        got = float(to_numpy(schedule(keras.ops.convert_to_tensor(step))))
        wanted = 2e-5 * bert4keras_share(step, points)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-12)
    pairs = PiecewiseLinear(2e-5, list(reversed(points.items())))
    assert pairs.points == schedule.points


@pytest.mark.parametrize("make", [AdamW, keras.optimizers.AdamW])
def test_accumulated_batches_are_one_step(make):
    """Of 8 batches every second one updates, and each batch sees the rate of its update."""
    task, (x, y) = make_task("texts")
    schedule = PiecewiseLinear(1.0, {2: 1.0, 4: 0.0})
    task.compile(make(schedule, gradient_accumulation_steps=2, weight_decay=0.0))
    rates = []
    note = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: rates.append(float(task.optimizer.learning_rate))
    )
    task.fit(x, y, batch_size=1, steps_per_epoch=8, callbacks=[note], verbose=0)
    assert rates == pytest.approx([0, 0, 0.5, 0.5, 1, 1, 0.5, 0.5])


def test_a_head_has_a_peak_beside_it():
    task, _ = make_task("texts")
    task.compile(AdamW(PiecewiseLinear(1e-4, {3: 1.0})), head_learning_rate=1e-3)
    assert sorted({row.factor for row in task.rates()}) == pytest.approx([1.0, 10.0])


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({}, "largest share of points must be 1, .* got the shares \\[\\]"),
        ({5: 0.5}, "must be 1, .* got the shares \\[0.5\\]. Divide"),
        ({-1: 1.0}, "A step of points must be an integer of at least 0, got -1"),
        ({0.1: 1.0}, "A step of points .* got 0.1"),
        ([1], "points must be a dict of step -> share, .* or pairs of both, got 1 in them"),
        (1000, r"points must be a list of pairs \(step, share\), or a dict .*, got 1000"),
        ({5: 2.0}, "A share of points must be from 0 to 1, got 2.0"),
        ([(5, 1.0), (5, 0.5)], "each step once, got the steps \\[5, 5\\]"),
    ],
)
def test_wrong_points(points, message):
    with pytest.raises(ValueError, match=message):
        PiecewiseLinear(1e-4, points)


def test_a_wrong_peak():
    with pytest.raises(ValueError, match="peak_learning_rate must be a number above 0, got 0"):
        PiecewiseLinear(0, {5: 1.0})
