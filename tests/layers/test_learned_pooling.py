import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from tables import everywhere_for

from keras_bert_suite.layers import (
    AttentionPooling,
    BiLSTMPooling,
    ConvolutionPooling,
    FirstLastPooling,
    LastLayers,
    MaxPooling,
    ScalarMix,
)

STATES = np.random.default_rng(0).normal(size=(4, 3, 6, 8)).astype("float32")
NUMBERS = (6, 4, 1)
MASK = np.array([[1] * n + [0] * (6 - n) for n in NUMBERS], "int32")

#: name -> (layer, width of its vectors).
LAYERS = {
    "attention": (lambda dtype=None: AttentionPooling(units=5, dtype=dtype), 8),
    "convolution": (lambda dtype=None: ConvolutionPooling(3, dtype=dtype), 12),
    "BiLSTM": (lambda dtype=None: BiLSTMPooling(dtype=dtype), 8),
    "scalar mix": (lambda dtype=None: ScalarMix(dtype=dtype), 8),
    "last layers": (lambda dtype=None: LastLayers(2, pooling="max", dtype=dtype), 16),
}


def pool(layer, states, mask):
    takes_all = getattr(layer, "takes_hidden_states", False)
    return to_numpy(layer(list(states) if takes_all else states[-1], mask)).astype("float32")


@pytest.mark.parametrize("name", everywhere_for(LAYERS, "BiLSTM"))
def test_only_tokens_count(name):
    make, width = LAYERS[name]
    keras.utils.set_random_seed(0)
    layer = make()
    pool(layer, STATES, MASK)
    randomize(layer)
    got = pool(layer, STATES, MASK)
    assert got.shape == (3, width) and np.isfinite(got).all()
    garbage = np.where(MASK[None, :, :, None], STATES, 1e4).astype("float32")
    longer = np.pad(garbage, [(0, 0), (0, 0), (0, 3), (0, 0)], constant_values=-1e4)
    np.testing.assert_allclose(pool(layer, longer, np.pad(MASK, [(0, 0), (0, 3)])), got, atol=1e-5)
    alone = pool(layer, STATES[:, 1:2, :4], MASK[1:2, :4])
    np.testing.assert_allclose(alone, got[1:2], atol=1e-5)
    assert np.isfinite(pool(layer, STATES, 0 * MASK)).all()

    low = make("mixed_bfloat16")
    pool(low, STATES, MASK)
    for ours, theirs in zip(low.weights, layer.weights, strict=True):
        ours.assign(theirs)
    np.testing.assert_allclose(pool(low, STATES, MASK), got, atol=6e-2)


def test_attention_pooling_is_a_weighted_mean():
    layer = AttentionPooling(units=5)
    pool(layer, STATES, MASK)
    randomize(layer)
    kernel, bias, score = (to_numpy(weight) for weight in layer.weights)
    states = STATES[-1, 1, :4]
    weights = np.exp(np.tanh(states @ kernel + bias) @ score[:, 0])
    wanted = (states * weights[:, None]).sum(0) / weights.sum()
    np.testing.assert_allclose(pool(layer, STATES, MASK)[1], wanted, atol=1e-5)


def test_convolutions_slide_over_the_text():
    layer = ConvolutionPooling(3, widths=(2,))
    pool(layer, STATES, MASK)
    randomize(layer)
    kernel, bias = (to_numpy(weight) for weight in layer.weights)
    states = np.concatenate([STATES[-1, 1, :4], np.zeros((1, 8))])
    found = [np.einsum("wh,whf->f", states[i : i + 2], kernel) + bias for i in range(4)]
    wanted = np.maximum(np.max(found, axis=0), 0)
    np.testing.assert_allclose(pool(layer, STATES, MASK)[1], wanted, atol=1e-5)


def test_lstms_read_forwards_and_backwards():
    layer = BiLSTMPooling()
    pool(layer, STATES, MASK)
    row = STATES[-1, 1:2, :4]
    forwards, backwards = layer.lstm.forward_layer, layer.lstm.backward_layer
    wanted = np.concatenate([to_numpy(forwards(row)), to_numpy(backwards(row))], axis=-1)
    np.testing.assert_allclose(pool(layer, STATES, MASK)[1:2], wanted, atol=1e-5)


def test_layers_are_mixed_and_joined():
    mix = ScalarMix(pooling="max")
    pool(mix, STATES, MASK)
    mix.layer_weights.assign([0.0, 1.0, 2.0, -1.0])
    mix.scale.assign(3.0)
    weights = np.exp([0.0, 1.0, 2.0, -1.0])
    mixed = 3 * np.einsum("n,nblh->blh", weights / weights.sum(), STATES)
    np.testing.assert_allclose(pool(mix, STATES, MASK)[1], mixed[1, :4].max(0), atol=1e-5)
    joined = pool(LastLayers(2, pooling=MaxPooling()), STATES, MASK)
    wanted = np.concatenate([STATES[2, 1, :4].max(0), STATES[3, 1, :4].max(0)])
    np.testing.assert_allclose(joined[1], wanted, atol=1e-6)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="num_layers must be from 1 to 3, .* got 4"):
        pool(LastLayers(4), STATES, MASK)
    with pytest.raises(ValueError, match="a FirstLastPooling takes all hidden states"):
        ScalarMix(pooling=FirstLastPooling())
    with pytest.raises(ValueError, match="widths must be one or more ints"):
        ConvolutionPooling(widths=())
