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
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
