import keras
import numpy as np
import pytest
from peer_weights import to_numpy

from keras_bert_suite.layers.poolings.pooling import (
    POOLINGS,
    FirstLastPooling,
    PromptlessPooling,
    get_pooling,
    name_pooling,
    name_poolings,
)

STATES = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], "int32")


def pool(name, states, mask, dtype=None):
    layer = get_pooling(name, dtype=dtype)
    first, last = states
    inputs = [last, first, last, last] if name == "first_last_average" else last
    pooled = layer(inputs, mask)
    assert keras.backend.standardize_dtype(pooled.dtype) == layer.compute_dtype
    return to_numpy(pooled)


@pytest.mark.every_backend
@pytest.mark.parametrize("name", POOLINGS)
def test_only_tokens_count(name):
    got = pool(name, STATES, MASK)
    assert got.shape == (3, 5) and np.isfinite(got).all()
    first, last = STATES
    wanted = {
        "mean": lambda row, n: last[row, :n].mean(axis=0),
        "cls": lambda row, n: last[row, 0],
        "last": lambda row, n: last[row, n - 1],
        "max": lambda row, n: last[row, :n].max(axis=0),
        "weighted_mean": lambda row, n: np.average(last[row, :n], axis=0, weights=range(1, n + 1)),
        "first_last_average": lambda row, n: (first[row, :n] + last[row, :n]).mean(axis=0) / 2,
    }[name]
    for row, number in enumerate([3, 1]):
        np.testing.assert_allclose(got[row], wanted(row, number), atol=1e-6)
    np.testing.assert_array_equal(pool(name, STATES, MASK.astype(bool)), got)
    low = pool(name, STATES, MASK, "mixed_bfloat16")
    np.testing.assert_allclose(low.astype("float32")[:2], got[:2], atol=2e-2)


def test_a_place_counts_padding_before_it():
    """As in sentence-transformers, for rows with padding on the left."""
    got = pool("weighted_mean", STATES[:, :2], np.ascontiguousarray(MASK[:2, ::-1]))
    np.testing.assert_allclose(
        got[0], np.average(STATES[1][0, 1:], axis=0, weights=(2, 3, 4)), atol=1e-6
    )


def test_a_mask_may_number_its_tokens():
    np.testing.assert_array_equal(pool("mean", STATES, 3 * MASK), pool("mean", STATES, MASK))


def test_a_pooling_is_a_name_a_layer_or_its_configuration():
    layer = get_pooling("first_last_average", name="pooling")
    assert isinstance(layer, FirstLastPooling) and name_pooling(layer) == "first_last_average"
    assert get_pooling(layer) is layer
    copy = get_pooling(keras.layers.serialize(layer))
    assert type(copy) is FirstLastPooling and copy.name == "pooling"
    assert name_pooling(keras.layers.GlobalMaxPooling1D()) is None
    with pytest.raises(
        ValueError, match="pooling must be one of mean, cls, last, max, .* got 'avg'"
    ):
        get_pooling("avg")


@pytest.mark.every_backend
def test_several_poolings_are_concatenated():
    layer = get_pooling(["max", "cls", "weighted_mean"], name="pooling")
    copy = get_pooling(keras.layers.serialize(layer))
    wanted = np.concatenate(
        [pool(name, STATES, MASK) for name in ("max", "cls", "weighted_mean")], axis=1
    )
    for pooling in (layer, copy):
        np.testing.assert_allclose(to_numpy(pooling(STATES[1], MASK)), wanted, atol=1e-6)
        assert name_poolings(pooling) == ["max", "cls", "weighted_mean"]
    assert name_poolings(get_pooling(["cls", "max"], "last")) == ["last", "max"]
    for wrong in (["mean", "first_last_average"], ["sum"], []):
        with pytest.raises(ValueError, match="last layer are concatenated: mean, cls, last, max"):
            get_pooling(wrong)


@pytest.mark.every_backend
def test_a_prompt_is_read_and_not_pooled():
    layer = PromptlessPooling(["mean", "max"])
    states = keras.ops.convert_to_tensor(STATES[1])
    np.testing.assert_array_equal(
        to_numpy(layer(states, MASK)), pool(["mean", "max"], STATES, MASK)
    )
    lengths = np.full(len(STATES[1]), 2, "int32")
    got = to_numpy(layer(states, MASK, prompt_length=lengths))[0]
    rest = STATES[1, 0, 2:3]
    np.testing.assert_allclose(got, np.concatenate([rest[0], rest[0]]), atol=1e-6)
    again = PromptlessPooling.from_config(layer.get_config())
    assert name_poolings(again) == ["mean", "max"]
