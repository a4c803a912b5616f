"""`Dense` beside Keras' own layer, with the same weights."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_suite.layers.dense import Dense

RNG = np.random.default_rng(0)


def make_pair(units=3, width=4, **arguments):
    """(ours, Keras'), with the same weights."""
    layers = [cls(units, **arguments) for cls in (Dense, keras.layers.Dense)]
    for layer in layers:
        layer.build((None, None, width))
    weights = [RNG.normal(size=weight.shape) for weight in layers[0].weights]
    for layer in layers:
        layer.set_weights(weights)
    return layers


@pytest.mark.every_backend
@pytest.mark.parametrize("shape", [(2, 4), (2, 5, 4), (0, 5, 4), (2, 1, 5, 4)])
@pytest.mark.parametrize("arguments", [{}, {"activation": "tanh"}, {"use_bias": False}])
def test_outputs(shape, arguments):
    ours, theirs = make_pair(**arguments)
    x = ops.convert_to_tensor(RNG.normal(size=shape).astype("float32"))
    got, wanted = ours(x), theirs(x)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(*map(ops.convert_to_numpy, (got, wanted)), atol=1e-6)


@pytest.mark.every_backend
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16"])
def test_dtypes(dtype):
    ours, theirs = make_pair(dtype=dtype)
    x = RNG.normal(size=(2, 5, 4)).astype("float32")
    got, wanted = ours(x), theirs(x)
    assert keras.backend.standardize_dtype(got.dtype) == ours.compute_dtype
    got, wanted = (ops.convert_to_numpy(ops.cast(y, "float32")) for y in (got, wanted))
    np.testing.assert_allclose(got, wanted, atol=0.05)


@pytest.mark.every_backend
@pytest.mark.parametrize("training", [False, True])
def test_gradients_in_bfloat16(training):
    """Also of what is computed outside training, where a product may be another one."""
    ours, theirs = make_pair(units=8, width=8, dtype="bfloat16")
    x = RNG.normal(size=(2, 5, 8)).astype("float32")
    changes = []
    for layer in (ours, theirs):
        before = [ops.convert_to_numpy(ops.cast(w, "float32")) for w in layer.weights]
        if layer is ours and not training:
            layer.call = functools.partial(type(layer).call, layer, training=False)
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(1.0), "mse")
        model.fit(x, x, verbose=0)
        after = [ops.convert_to_numpy(ops.cast(w, "float32")) for w in layer.weights]
        changes.append([b - a for a, b in zip(after, before, strict=True)])
    for got, wanted in zip(*changes, strict=True):
        assert np.abs(wanted).max() > 0.1
        np.testing.assert_allclose(got, wanted, atol=0.03)


@pytest.mark.every_backend
@pytest.mark.parametrize("mode", ["int8", "lora"])
def test_quantized_or_with_lora(mode):
    ours, theirs = make_pair(units=8, width=8)
    for layer in (ours, theirs):
        layer.enable_lora(2) if mode == "lora" else layer.quantize(mode)
    if mode == "lora":
        adapters = [RNG.normal(size=weight.shape) for weight in ours.trainable_weights]
        for layer in (ours, theirs):
            for weight, value in zip(layer.trainable_weights, adapters, strict=True):
                weight.assign(value)
    x = RNG.normal(size=(2, 5, 8)).astype("float32")
    np.testing.assert_allclose(*(ops.convert_to_numpy(y(x)) for y in (ours, theirs)), atol=1e-5)


def test_training():
    """The weights after two epochs are those of Keras' layer."""
    layers = make_pair(activation="relu")
    x, y = RNG.normal(size=(8, 5, 4)), RNG.normal(size=(8, 5, 3))
    for layer in layers:
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    for got, wanted in zip(*(layer.get_weights() for layer in layers), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)
