"""Against the formulas of the paper, in NumPy, one span at a time."""

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy

from keras_bert_suite.layers import EfficientGlobalPointer, GlobalPointer
from keras_bert_suite.layers.attention.rotary_positions import rotate_positions
from keras_bert_suite.training import SpanLoss

B, L, H, C, D = 2, 6, 8, 3, 4
LAYERS = [GlobalPointer, EfficientGlobalPointer]


def make_inputs():
    mask = np.ones((B, L), "int32")
    mask[1, 4:] = 0
    return {
        "sequence": np.random.default_rng(0).normal(size=(B, L, H)).astype("float32"),
        "padding_mask": mask,
    }


def rotate(vector, position):
    """The paper's matrix R of the position, its dimensions ordered as in the layer."""
    angles = position * 10000.0 ** (-2 * np.arange(D // 2) / D)
    matrix = np.zeros((D, D))
    for i, angle in enumerate(angles):
        j = i + D // 2
        matrix[i, i], matrix[i, j] = np.cos(angle), -np.sin(angle)
        matrix[j, i], matrix[j, j] = np.sin(angle), np.cos(angle)
    return matrix @ vector


def numpy_score(layer, hidden, kind, first, last):
    w = {v.path.split("/", 1)[1]: to_numpy(v).astype("float64") for v in layer.weights}
    turn = rotate if layer.rotary else lambda vector, position: vector
    if isinstance(layer, GlobalPointer):
        begin = 2 * D * kind
        vectors = hidden @ w["dense/kernel"] + w["dense/bias"]
        query = turn(vectors[first, begin : begin + D], first)
        key = turn(vectors[last, begin + D : begin + 2 * D], last)
        return query @ key / D**0.5
    vectors = hidden @ w["pair_dense/kernel"] + w["pair_dense/bias"]
    types = vectors @ w["type_dense/kernel"] + w["type_dense/bias"]
    pair = turn(vectors[first, :D], first) @ turn(vectors[last, D:], last) / D**0.5
    return pair + types[first, kind] + types[last, C + kind]


@pytest.mark.every_backend
@pytest.mark.parametrize("rotary", [True, False])
@pytest.mark.parametrize("layer_cls", LAYERS)
def test_the_scores_are_those_of_the_paper(layer_cls, rotary):
    layer = layer_cls(C, head_dim=D, rotary=rotary)
    inputs = make_inputs()
    layer(**inputs)
    for seed, weight in enumerate(layer.weights):
        weight.assign(np.random.default_rng(seed).normal(size=weight.shape))
    got = to_numpy(layer(**inputs))
    assert got.shape == (B, C, L, L)
    for b, kind, first, last in np.ndindex(got.shape):
        length = inputs["padding_mask"][b].sum()
        if first <= last < length:
            wanted = numpy_score(layer, inputs["sequence"][b].astype("float64"), kind, first, last)
            assert got[b, kind, first, last] == pytest.approx(wanted, abs=1e-4)
        else:
            assert got[b, kind, first, last] < -1e11


def test_a_product_of_rotated_vectors_knows_only_their_distance():
    rng = np.random.default_rng(0)
    query, key = (np.tile(rng.normal(size=(1, 1, D)), (1, L, 1)).astype("float32") for _ in "qk")
    query, key = (to_numpy(rotate_positions(x))[0].astype("float64") for x in (query, key))
    products = query @ key.T
    for distance in range(-L + 1, L):
        diagonal = np.diagonal(products, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-5)
    assert np.ptp(products[0]) > 0.1


@pytest.mark.parametrize("layer_cls", LAYERS)
def test_training_and_precision(layer_cls):
    inputs = make_inputs()
    symbols = {
        "sequence": keras.Input((None, H), name="sequence"),
        "padding_mask": keras.Input((None,), dtype="int32", name="padding_mask"),
    }
    layer = layer_cls(C, head_dim=D)
    model = keras.Model(symbols, layer(**symbols))
    assert model.output.shape == (None, C, None, None)
    randomize(model)
    before = model.get_weights()
    spans = np.array([[[1, 2, 0], [1, 4, 2]], [[0, 0, 1], [-1, -1, -1]]], "int32")
    model.compile("sgd", SpanLoss())
    model.fit(inputs, spans, verbose=0)
    for weight, old in zip(model.weights, before, strict=True):
        assert (to_numpy(weight) != old).any(), weight.path
    half = layer_cls(C, head_dim=D, dtype="mixed_bfloat16")
    half(**inputs)
    half.set_weights(layer.get_weights())
    got, wanted = to_numpy(half(**inputs)), to_numpy(layer(**inputs))
    assert keras.backend.standardize_dtype(half(**inputs).dtype) == "float32"
    np.testing.assert_allclose(got, wanted, atol=0.1)


def test_the_loss_is_the_formula():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(B, C, L, L)).astype("float32") * 3
    scores[:, :, np.arange(L)[:, None] > np.arange(L)] = -1e12
    spans = np.full((B, 4, 3), -1, "int32")
    spans[0, :3] = [[1, 2, 0], [1, 4, 0], [3, 3, 2]]
    wanted = np.zeros((B, C))
    for b, kind in np.ndindex(B, C):
        positive = [tuple(s[:2]) for s in spans[b] if s[0] >= 0 and s[2] == kind]
        negative = [
            scores[b, kind, i, j] for i in range(L) for j in range(i, L) if (i, j) not in positive
        ]
        wanted[b, kind] = np.log(1 + np.exp(negative).sum()) + np.log(
            1 + np.exp([-scores[b, kind, i, j] for i, j in positive]).sum()
        )
    loss = SpanLoss(reduction=None)
    np.testing.assert_allclose(to_numpy(loss(spans, scores)), wanted.mean(axis=1), rtol=1e-5)
    assert keras.losses.deserialize(keras.losses.serialize(loss)).get_config() == loss.get_config()


def test_an_odd_dimension_is_an_error():
    with pytest.raises(ValueError, match="head_dim must be an even number .* got 3"):
        GlobalPointer(2, head_dim=3)
