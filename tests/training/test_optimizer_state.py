"""An optimizer that goes on with other weights is the optimizer that has always had them."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from tables import everywhere_for

from keras_bert_suite import AdamW, Lamb
from keras_bert_suite.training import fit_optimizer

OPTIMIZERS = {
    "AdamW": lambda: AdamW(0.1, global_clipnorm=None),
    "AdamW, accumulated": lambda: AdamW(0.1, global_clipnorm=None, gradient_accumulation_steps=2),
    "AdamW, 16-bit moments": lambda: AdamW(0.1, global_clipnorm=None, momentum_dtype="bfloat16"),
    "AdamW, Lookahead": lambda: AdamW(0.1, global_clipnorm=None, lookahead_steps=3),
    "Lamb": lambda: Lamb(0.1, global_clipnorm=None),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(AdamW(0.1, global_clipnorm=None)),
    "Adam": lambda: keras.optimizers.Adam(0.1),
    "averages": lambda: keras.optimizers.Adam(0.1, use_ema=True, ema_momentum=0.5),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "Nadam": lambda: keras.optimizers.Nadam(0.1),
    "Adafactor": lambda: keras.optimizers.Adafactor(0.1),
    "Lion": lambda: keras.optimizers.Lion(0.1),
}


def make_weights():
    values = {n: np.full((2, 3), i + 1.0, "float32") for i, n in enumerate("abc")}
    return {n: keras.Variable(value, name=n) for n, value in values.items()}


def step(optimizer, weights, number):
    """A step of gradients that depend on the weight and on the number of the step alone."""
    wave = np.cos(np.arange(6.0) + number).reshape(2, 3)
    gradients = [
        keras.ops.convert_to_tensor(wave * (1 + ord(weight.name) % 3), "float32")
        for weight in weights
    ]
    optimizer.apply([optimizer.scale_loss(gradient) for gradient in gradients], weights)


@pytest.mark.parametrize("name", everywhere_for(OPTIMIZERS, "AdamW, accumulated", "loss scale"))
def test_weights_that_stay_are_trained_as_before(name):
    if name == "loss scale" and keras.config.backend() == "jax":
        pytest.skip("Keras' loss scale takes no step outside of a compiled function there.")
    optimizer, twin = OPTIMIZERS[name](), OPTIMIZERS[name]()
    ours, theirs = make_weights(), make_weights()
    twin.build([theirs["b"]])
    for number, names in enumerate([("a", "b"), ("b",), ("b", "c"), ("a", "b", "c")]):
        trained = [ours[n] for n in names]
        frozen = [weight for n, weight in ours.items() if n not in names]
        assert fit_optimizer(optimizer, trained, frozen)
        assert not fit_optimizer(optimizer, trained, frozen)
        for half in (0, 1):
            step(optimizer, trained, 2 * number + half)
            step(twin, [theirs["b"]], 2 * number + half)
        np.testing.assert_allclose(to_numpy(ours["b"]), to_numpy(theirs["b"]), rtol=0, atol=1e-6)
        fresh = OPTIMIZERS[name]()
        fresh.build(trained)
        assert len(optimizer.variables) == len(fresh.variables)
    assert int(to_numpy(optimizer.iterations)) == int(to_numpy(twin.iterations)) > 0


def test_averages_of_thawed_weights_begin_with_the_weights():
    weights, optimizer = make_weights(), OPTIMIZERS["averages"]()
    fit_optimizer(optimizer, [weights["a"]], [weights["b"]])
    step(optimizer, [weights["a"]], 0)
    fit_optimizer(optimizer, [weights["a"], weights["b"]], [])
    average = optimizer._model_variables_moving_average[1]
    np.testing.assert_array_equal(to_numpy(average), to_numpy(weights["b"]))


def test_patterns_may_find_frozen_weights():
    weights = make_weights()
    a, b, c = weights.values()
    optimizer = AdamW(0.1, rate_multipliers={"^a$": 0.5}, no_decay=["^c$"])
    fit_optimizer(optimizer, [b], [a, c])
    fit_optimizer(optimizer, [a, b], [c])
    assert optimizer.rate_multiplier_of(a) == 0.5
    with pytest.raises(ValueError, match="finds none of the 3 variables"):
        fit_optimizer(AdamW(0.1, no_decay=["^d$"]), [b], [a, c])
