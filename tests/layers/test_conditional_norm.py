"""Norms with a condition, beside a transcription of bert4keras' `LayerNormalization`."""

import keras
import numpy as np
import pytest
import torch
from gradients import compute_gradients, input_gradients
from peer_weights import randomize, to_numpy

import keras_bert_suite as kbs
from keras_bert_suite.layers.norms import ConditionalNorm

RNG = np.random.default_rng(0)
X = RNG.normal(2, 3, (3, 4, 6)).astype("float32")
CONDITION = RNG.standard_normal((3, 2)).astype("float32")


def normalize(x, condition, weights, activation):
    """`call` of bert4keras, in PyTorch, with an epsilon of 1e-3."""
    gamma, beta, *hidden, gamma_kernel, beta_kernel = weights
    for kernel in hidden:
        condition = activation(condition @ kernel)
    condition = condition.unsqueeze(1)
    gamma, beta = condition @ gamma_kernel + gamma, condition @ beta_kernel + beta
    centered = x - x.mean(-1, keepdim=True)
    return centered / torch.sqrt(centered.square().mean(-1, keepdim=True) + 1e-3) * gamma + beta


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("settings", "activation"),
    [((2,), None), ((2, 5), lambda x: x), ((2, 5, "relu"), torch.relu)],
    ids=["plain", "hidden", "relu"],
)
def test_it_is_the_rule_of_bert4keras(settings, activation):
    """In outputs, and in the gradients of weights, states and conditions."""
    norm = ConditionalNorm(kbs.NormCondition(*settings), epsilon=1e-3, name="norm")
    symbols = {"x": keras.Input((None, 6)), "condition": keras.Input((2,))}
    model = randomize(keras.Model(symbols, {"out": norm(*symbols.values())}))
    tensors = [torch.tensor(array, requires_grad=True) for array in (X, CONDITION)]
    weights = [torch.tensor(to_numpy(w), requires_grad=True) for w in norm.weights]
    wanted = normalize(*tensors, weights, activation)
    (wanted**2).sum().backward()
    np.testing.assert_allclose(to_numpy(norm(X, CONDITION)), wanted.detach(), rtol=0, atol=1e-5)
    inputs = {"x": X, "condition": CONDITION}
    found = compute_gradients(model, inputs, {"out": 2 * wanted.detach().numpy()})
    found = [*input_gradients(norm, (X, CONDITION)), *(found[w.path] for w in norm.weights)]
    for got, tensor in zip(found, [*tensors, *weights], strict=True):
        np.testing.assert_allclose(to_numpy(got), tensor.grad, rtol=1e-4, atol=1e-3)


@pytest.mark.backend("torch")
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "mixed_bfloat16", "float16"])
def test_it_is_computed_in_float32_at_least(dtype):
    norm = ConditionalNorm(kbs.NormCondition(2), epsilon=1e-3, dtype=dtype)
    norm.build(X.shape)
    randomize(norm)
    compute = getattr(torch, norm.compute_dtype)
    x, condition = torch.tensor(X).to(compute), torch.tensor(CONDITION).to(compute)
    weights = [w.value.detach().to(compute).double() for w in norm.weights]
    wanted = normalize(x.double(), condition.double(), weights, None).to(compute)
    got = norm(x, condition)
    assert got.dtype == compute
    rounding = {"float64": 1e-6}.get(dtype, torch.finfo(compute).eps)
    torch.testing.assert_close(got, wanted, rtol=rounding, atol=rounding)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((0,), "dim must be"),
        ((2, 0), "hidden_dim must be"),
        ((2, None, "relu"), "activation='relu' is of a layer .* with hidden_dim"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        kbs.NormCondition(*settings)


def test_settings_are_read_back():
    settings = kbs.NormCondition(3, 5, keras.activations.tanh)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(settings))
    assert again == kbs.NormCondition(3, 5, "tanh")
