"""`linear` by oneDNN beside PyTorch's own, on any processor that has it."""

import keras
import numpy as np
import pytest

from keras_bert_suite.layers import torch_products

torch = pytest.importorskip("torch")
linear = torch.nn.functional.linear

pytestmark = [
    pytest.mark.skipif(
        not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this PyTorch has no oneDNN"
    ),
]


@pytest.fixture(autouse=True)
def every_product_by_onednn(monkeypatch):
    monkeypatch.setattr(torch_products, "_is_mkl_slow", lambda: True)
    monkeypatch.setattr(torch_products, "_LEAST_PRODUCT", 0)


def make_weights(*shapes):
    rng = np.random.default_rng(0)
    return [torch.tensor(rng.normal(size=s).astype("float32"), requires_grad=True) for s in shapes]


def multiply_bound(x, kernel, bias=None, gelu=None):
    return torch_products.bind_linear(kernel, bias, gelu)(x)


@pytest.fixture(params=["asked each time", "asked once", "asked once, and small"])
def product(request, monkeypatch):
    """`linear`, or `bind_linear` as a function of the same arguments."""
    if request.param.endswith("small"):
        monkeypatch.setattr(torch_products, "_LEAST_PRODUCT", 1 << 40)
    return torch_products.linear if request.param.endswith("time") else multiply_bound


@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 5), (2, 1, 3, 5), (0, 5)])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("gelu", [None, "none", "tanh"])
@pytest.mark.parametrize("grad", [True, False])
def test_outputs(shape, has_bias, gelu, grad, product):
    x, kernel, bias = make_weights(shape, (5, 7), (7,))
    bias = bias if has_bias else None
    wanted = linear(x, kernel.T, bias)
    wanted = wanted if gelu is None else torch.nn.functional.gelu(wanted, approximate=gelu)
    with torch.set_grad_enabled(grad):
        got = product(x, kernel, bias, gelu)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(*(y.detach().numpy() for y in (got, wanted)), atol=1e-5)


@pytest.mark.parametrize("view", ["whole", "transposed", "first rows", "repeated"])
def test_gradients(view, product):
    """Of views too, and of a sum, whose own gradient is one number repeated."""
    make_view = {
        "whole": lambda x: x,
        "transposed": lambda x: x.transpose(0, 1),
        "first rows": lambda x: x[:, 0],
        "repeated": lambda x: x[:1].expand(3, -1, -1),
    }[view]
    gradients = []
    for function in (product, lambda x, k, b: linear(x, k.T, b)):
        x, kernel, bias = make_weights((4, 3, 5), (5, 7), (7,))
        y = function(make_view(x), kernel, bias)
        gradients.append(torch.autograd.grad(y.sum() + (y**2).sum(), (x, kernel, bias)))
    for got, wanted in zip(*gradients, strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)


def test_gradients_of_gradients(product):
    penalties = []
    for function in (product, lambda x, k: linear(x, k.T)):
        x, kernel = make_weights((4, 5), (5, 7))
        (first,) = torch.autograd.grad((function(x, kernel) ** 2).sum(), x, create_graph=True)
        penalties.append(torch.autograd.grad((first**2).sum(), kernel)[0].numpy())
    np.testing.assert_allclose(*penalties, rtol=1e-4)


def test_frozen_weights_get_no_gradient():
    x, kernel, bias = make_weights((4, 5), (5, 7), (7,))
    kernel.requires_grad_(False)
    torch_products.linear(x, kernel, bias).sum().backward()
    assert kernel.grad is None and x.grad is not None and bias.grad is not None


def test_what_onednn_does_not_take(monkeypatch):
    """Other dtypes, shape inference and small products go to PyTorch's own."""
    x, kernel = make_weights((4, 5), (5, 7))
    half = torch_products.linear(x.bfloat16(), kernel.bfloat16())
    assert half.dtype == torch.bfloat16
    assert torch_products.linear(x.to("meta"), kernel.to("meta")).shape == (4, 7)
    monkeypatch.setattr(torch_products, "_LEAST_PRODUCT", 4 * 5 * 7 + 1)
    assert "Product" not in type(torch_products.linear(x, kernel).grad_fn).__name__


def test_a_trained_encoder(monkeypatch):
    """Three steps of an encoder come to the same weights."""
    import keras_bert_suite as kbs

    trained = []
    for slow in (True, False):
        monkeypatch.setattr(torch_products, "_is_mkl_slow", lambda slow=slow: slow)
        keras.utils.set_random_seed(0)
        backbone = kbs.BertBackbone(
            vocabulary_size=20, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16
        )
        task = kbs.MaskedLM(backbone)
        task.compile(keras.optimizers.SGD(0.1))
        names = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
        x = {name: np.ones((2, 6), "int32") for name in names}
        x["segment_ids"] *= 0
        for _ in range(3):
            task.train_on_batch(x, np.full((2, 6), 3), np.ones((2, 6)))
        trained.append(task.get_weights())
    for got, wanted in zip(*trained, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)
