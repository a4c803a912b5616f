import math

import keras
import numpy as np
import pytest
from peer_weights import to_numpy

from keras_bert_suite.layers import gelu_erf, gelu_tanh

X = np.linspace(-6, 6, 241, dtype="float32")


@pytest.mark.every_backend
def test_gelu_erf_is_the_exact_formula():
    expected = [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in X.tolist()]
    np.testing.assert_allclose(to_numpy(gelu_erf(X)), expected, atol=2e-6)


@pytest.mark.every_backend
@pytest.mark.parametrize(("dtype", "rounding"), [("bfloat16", 2**-9), ("float16", 2**-12)])
def test_gelu_erf_of_16_bits_is_rounded_once(dtype, rounding):
    if keras.config.backend() == "jax":
        pytest.skip("JAX computes it in 16 bits, which halves what a gradient keeps")
    x = keras.ops.cast(X[X > -3], dtype)
    expected = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in to_numpy(x).tolist()]
    # Half a unit of the last place, and what float32 loses.
    np.testing.assert_allclose(to_numpy(gelu_erf(x)), expected, rtol=2 * rounding, atol=1e-6)
    assert gelu_erf(x).dtype == x.dtype


def test_gelu_tanh_is_googles_formula():
    expected = 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(to_numpy(gelu_tanh(X)), expected, atol=2e-6)


def test_the_two_are_those_of_transformers():
    torch = pytest.importorskip("torch")
    activations = pytest.importorskip("transformers.activations").ACT2FN
    x = torch.from_numpy(X)
    np.testing.assert_allclose(to_numpy(gelu_erf(X)), activations["gelu"](x), atol=2e-6)
    np.testing.assert_allclose(to_numpy(gelu_tanh(X)), activations["gelu_new"](x), atol=2e-6)


@pytest.mark.parametrize("activation", [gelu_erf, gelu_tanh])
def test_serialization(activation):
    config = keras.activations.serialize(activation)
    assert keras.activations.get(config) is activation
