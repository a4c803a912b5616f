import keras
import numpy as np
import pytest

from keras_bert_suite import LinearWarmupDecay


def google_rate(step, peak, total, warmup):
    """optimization.py: polynomial decay of power 1 to 0, replaced while step < warmup."""
    return peak * step / warmup if step < warmup else peak * (1 - min(step, total) / total)


@pytest.mark.parametrize(("total", "warmup"), [(100, 10), (7, 3), (10, 1)])
def test_equals_googles(total, warmup):
    schedule = LinearWarmupDecay(2e-5, total_steps=total, warmup_steps=warmup)
    for step in range(total + 5):
        rate = float(keras.ops.convert_to_numpy(schedule(step)))
        np.testing.assert_allclose(
            rate, google_rate(step, 2e-5, total, warmup), rtol=1e-5, atol=1e-12
        )


def test_span_sets_an_open_length_only():
    schedule = LinearWarmupDecay(1.0, warmup_ratio=0.4)
    with pytest.raises(ValueError, match="does not know its length"):
        schedule(0)
    schedule.set_length(first_step=10, num_steps=7)
    rates = [float(keras.ops.convert_to_numpy(schedule(s))) for s in range(10, 18)]
    # The warm-up is 2.8 steps long, which are 2 whole steps.
    wanted = [0, 1 / 2, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7, 0]
    np.testing.assert_allclose(rates, wanted, atol=1e-6)
    fixed = LinearWarmupDecay(1.0, total_steps=4, warmup_steps=0)
    fixed.set_length(first_step=10, num_steps=400)
    assert float(keras.ops.convert_to_numpy(fixed(2))) == 0.5


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"warmup_ratio": 10}, "warmup_ratio .* got 10"),
        ({"warmup_ratio": "a"}, "warmup_ratio must be a number .* got 'a'"),
        ({"peak_learning_rate": "a"}, "peak_learning_rate must be a number .* got 'a'"),
        ({"peak_learning_rate": float("nan")}, "peak_learning_rate must be a number .* got nan"),
        ({"total_steps": 0}, "total_steps must be a number above 0, got 0"),
        ({"warmup_steps": -1}, "warmup_steps must be a number of at least 0, got -1"),
    ],
)
def test_wrong_numbers(arguments, error):
    with pytest.raises(ValueError, match=error):
        LinearWarmupDecay(**{"peak_learning_rate": 1.0, **arguments})
