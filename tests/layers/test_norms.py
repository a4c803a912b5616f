"""The norm of the layers is that of Keras, in values and gradients."""

import keras
import numpy as np
import pytest
import torch

from keras_bert_suite.layers.norms import LayerNormalization


@pytest.mark.backend("torch")
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16", "mixed_bfloat16"])
def test_it_is_the_norm_of_keras(dtype, center):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=4) for _ in range(1 + center)]
    results = []
    for kind in (LayerNormalization, keras.layers.LayerNormalization):
        norm = kind(epsilon=1e-3, center=center, dtype=dtype)
        norm.build((2, 3, 4))
        norm.set_weights(weights)
        x = torch.tensor(np.random.default_rng(1).normal(3, 5, (2, 3, 4)))
        x = x.to(getattr(torch, norm.compute_dtype)).requires_grad_()
        outputs = norm(x)
        outputs.sin().sum().backward()
        results.append([outputs, x.grad, *(weight.value.grad for weight in norm.weights)])
    # Sums of 16-bit numbers are rounded at the end. Keras casts whole arrays, and adds in turn.
    is_wide = dtype in ("float64", "float32")
    for ours, theirs in zip(*results, strict=True):
        rounding = 0 if is_wide else torch.finfo(getattr(torch, norm.compute_dtype)).eps
        largest = float(theirs.abs().max())
        torch.testing.assert_close(ours, theirs, rtol=rounding, atol=rounding * largest)


@pytest.mark.backend("jax")
@pytest.mark.parametrize("center", [True, False])
def test_its_formula_under_jax_gives_the_same(center):
    import jax

    x = np.random.default_rng(1).normal(3, 5, (2, 3, 4)).astype("float32")
    weights = [np.random.default_rng(0).normal(size=4) for _ in range(1 + center)]
    results = []
    for kind in (LayerNormalization, keras.layers.LayerNormalization):
        norm = kind(epsilon=1e-3, center=center)
        norm.build(x.shape)
        norm.set_weights(weights)

        def total(x, *weights, norm=norm):
            with keras.StatelessScope(list(zip(norm.weights, weights, strict=True))):
                return keras.ops.sum(keras.ops.sin(norm(x)))

        values = [weight.value for weight in norm.weights]
        argnums = tuple(range(1 + len(values)))
        results.append([norm(x), *jax.grad(total, argnums)(jax.numpy.asarray(x), *values)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.backend("jax")
@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16", "float16"])
def test_its_dtype_under_jax_is_that_of_keras(dtype):
    x = np.random.default_rng(1).normal(3, 5, (2, 3, 4)).astype("float32")
    ours, theirs = (
        kind(epsilon=1e-3, dtype=dtype)(x)
        for kind in (LayerNormalization, keras.layers.LayerNormalization)
    )
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(
        *(np.asarray(y).astype("float32") for y in (ours, theirs)), rtol=0, atol=2e-2
    )
