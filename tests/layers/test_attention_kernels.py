from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import to_numpy

from keras_bert_suite.layers.attention.attention_kernels import fused_attention, plain_attention

B, HEADS, L, D = 3, 2, 7, 5
BACKEND = keras.config.backend()
has_kernel = pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow has no fused kernel")


def random_qkv(dtype="float32"):
    rng = np.random.default_rng(0)
    return [
        ops.convert_to_tensor(2 * rng.standard_normal((B, HEADS, L, D)), dtype=dtype)
        for _ in range(3)
    ]


def random_mask(*shape):
    mask = np.random.default_rng(1).random(shape) < 0.6
    mask[..., 0] = True  # every query sees something
    return mask


def numpy_attention(query, key, value, mask):
    query, key, value = (np.asarray(to_numpy(x), "float64") for x in (query, key, value))
    scores = np.einsum("bhqd,bhkd->bhqk", query, key) / np.sqrt(D)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    if mask is not None:
        weights = weights * mask
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", weights, value)


MASKS = {
    "none": None,
    "padding": random_mask(B, 1, 1, L),
    "per query": random_mask(B, 1, L, L),
    "shared by the batch": random_mask(1, 1, L, L),
    "per head": random_mask(B, HEADS, L, L),
    "heads, shared by the batch": random_mask(1, HEADS, L, L),
}


@pytest.mark.every_backend
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_plain_is_the_formula(mask):
    query, key, value = random_qkv()
    tensor = None if mask is None else ops.convert_to_tensor(mask)
    got = to_numpy(plain_attention(query, key, value, tensor))
    np.testing.assert_allclose(got, numpy_attention(query, key, value, mask), atol=1e-5)


@pytest.mark.every_backend
@has_kernel
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_fused_agrees_with_plain(mask):
    query, key, value = random_qkv()
    tensor = None if mask is None else ops.convert_to_tensor(mask)
    kernel = fused_attention(query, dropout=0.0)
    got = to_numpy(kernel(query, key, value, tensor))
    np.testing.assert_allclose(got, to_numpy(plain_attention(query, key, value, tensor)), atol=1e-5)


@has_kernel
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_fused_agrees_with_plain_in_bfloat16(mask):
    query, key, value = random_qkv("bfloat16")
    tensor = None if mask is None else ops.convert_to_tensor(mask)
    fused = fused_attention(query, dropout=0.0)(query, key, value, tensor)
    plain = plain_attention(query, key, value, tensor)
    assert keras.backend.standardize_dtype(fused.dtype) == "bfloat16"
    assert keras.backend.standardize_dtype(plain.dtype) == "bfloat16"
    np.testing.assert_allclose(to_numpy(fused), to_numpy(plain), atol=5e-2)


@pytest.mark.every_backend
@pytest.mark.parametrize("kernel", ["plain", "fused"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_query_that_sees_nothing_stays_finite(kernel, dtype):
    query, key, value = random_qkv(dtype)
    mask = np.ones((B, 1, L, L), "bool")
    mask[1] = False  # a fully padded row
    mask[2, :, 3] = False  # one lonely query
    attend = plain_attention if kernel == "plain" else fused_attention(query, 0.0)
    if attend is None:
        pytest.skip("no fused kernel for this case")
    got = to_numpy(attend(query, key, value, ops.convert_to_tensor(mask)))
    assert np.isfinite(got).all()
    everything = to_numpy(attend(query, key, value))
    np.testing.assert_allclose(got[0], everything[0], atol=1e-2 if dtype != "float32" else 1e-5)


def test_extreme_scores_stay_finite():
    query, key, value = random_qkv()
    got = to_numpy(
        plain_attention(1e4 * query, key, value, ops.convert_to_tensor(MASKS["padding"]))
    )
    assert np.isfinite(got).all()


@pytest.mark.every_backend
def test_which_cases_have_a_kernel():
    on_cpu, on_cuda = (
        SimpleNamespace(is_cuda=is_cuda, dtype="float32") for is_cuda in (False, True)
    )
    assert (fused_attention(on_cpu, 0.0) is None) == (BACKEND == "tensorflow")
    assert fused_attention(on_cpu, 0.1) is None
    if BACKEND == "torch":
        assert fused_attention(on_cuda, 0.1) is fused_attention(on_cpu, 0.0)


def test_a_tensor_of_the_backend_can_be_asked():
    query, _, _ = random_qkv()
    assert (fused_attention(query, 0.0) is None) == (BACKEND == "tensorflow")
    if not getattr(query, "is_cuda", False):
        assert fused_attention(query, 0.1) is None


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch's kernel drops")
def test_the_kernel_applies_its_dropout():
    length, rate = 64, 0.25
    query = key = ops.zeros((1, 1, length, D))  # all probabilities are 1 / length
    kernel = fused_attention(SimpleNamespace(is_cuda=True, dtype="float32"), rate)
    value = ops.reshape(ops.eye(length), (1, 1, length, length))
    probabilities = to_numpy(kernel(query, key, value, None, rate)) * length
    dropped = probabilities == 0
    assert abs(dropped.mean() - rate) < 0.03
    np.testing.assert_allclose(probabilities[~dropped], 1 / (1 - rate), rtol=1e-5)
