"""Against the published algorithm in NumPy, and against Keras' own where the two agree."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_suite import Lamb

RATE, DECAY = 1e-2, 0.1


@pytest.fixture
def variables():
    inputs = keras.Input((6,))
    x = keras.layers.LayerNormalization(name="layer_norm")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(3, name="dense")(x))
    rng = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))
    return model.trainable_variables


def random_gradients(rng, variables):
    return [0.1 * rng.normal(size=v.shape).astype("float32") for v in variables]


def test_steps_equal_the_formula(variables):
    optimizer = Lamb(RATE, weight_decay=DECAY, global_clipnorm=None)
    assert [v.path for v in variables] == [
        "layer_norm/gamma", "layer_norm/beta", "dense/kernel", "dense/bias",
    ]  # fmt: skip
    weights = [ops.convert_to_numpy(v).astype("float64") for v in variables]
    m, v = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    rng = np.random.default_rng(1)
    for step in range(1, 7):
        gradients = random_gradients(rng, variables)
        optimizer.apply([ops.convert_to_tensor(g) for g in gradients], variables)
        for i, gradient in enumerate(gradients):
            m[i] = 0.9 * m[i] + 0.1 * gradient
            v[i] = 0.999 * v[i] + 0.001 * gradient**2
            corrected = m[i] / (1 - 0.9**step), v[i] / (1 - 0.999**step)
            adapted = variables[i].path == "dense/kernel"
            update = corrected[0] / (np.sqrt(corrected[1]) + 1e-6) + adapted * DECAY * weights[i]
            ratio = np.linalg.norm(weights[i]) / np.linalg.norm(update) if adapted else 1.0
            weights[i] -= RATE * ratio * update
    for variable, wanted in zip(variables, weights, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(variable), wanted, atol=3e-6)


def test_without_decay_it_is_keras_own(variables):
    ours = Lamb(RATE, weight_decay=0.0, global_clipnorm=None, epsilon=1e-6, no_decay=())
    theirs = keras.optimizers.Lamb(RATE, epsilon=1e-6)
    twins = [keras.Variable(ops.convert_to_numpy(v).copy()) for v in variables]
    rng = np.random.default_rng(2)
    for _ in range(4):
        gradients = [ops.convert_to_tensor(g) for g in random_gradients(rng, variables)]
        ours.apply(gradients, variables)
        theirs.apply(gradients, twins)
    for variable, twin in zip(variables, twins, strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(variable), ops.convert_to_numpy(twin), atol=3e-6
        )


def test_weights_of_zero_are_moved(variables):
    kernel = variables[2]
    kernel.assign(np.zeros(kernel.shape))
    optimizer = Lamb(RATE)
    rng = np.random.default_rng(3)
    optimizer.apply([ops.convert_to_tensor(g) for g in random_gradients(rng, variables)], variables)
    moved = ops.convert_to_numpy(kernel)
    assert np.isfinite(moved).all() and moved.any()
