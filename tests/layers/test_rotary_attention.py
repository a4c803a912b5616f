import numpy as np
import pytest
from checkers import check_layer
from peer_weights import randomize, to_numpy

from keras_bert_suite.layers import RotaryAttention
from keras_bert_suite.layers.attention.rotary_positions import rotate_pairs

B, L, H, HEADS = 3, 5, 12, 3


def random_hidden():
    return np.random.default_rng(0).standard_normal((B, L, H)).astype("float32")


def test_basics():
    inputs = {
        "hidden": random_hidden(),
        "attention_mask": np.ones((B, L), "int32"),
        "positions": np.array([[0, 1, 2, 0, 1], [0, 1, 2, 3, 4], [0, 0, 1, 2, 3]], "int32"),
    }
    check_layer(RotaryAttention, {"num_heads": HEADS, "rotary_value": True}, inputs, (B, L, H))


def test_pairs_turn_as_complex_numbers():
    """The paper's equation 13: a pair is a complex number, times e^(i m theta)."""
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype("float32")
    positions = np.array([[0, 1, 700, 3], [5, 6, 0, -2]], "int32")
    theta = 10000.0 ** (-2 * np.arange(3) / 6)
    angles = positions[:, None, :, None] * theta
    turned = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    expected = np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)
    np.testing.assert_allclose(to_numpy(rotate_pairs(x, positions)), expected, atol=2e-4)


@pytest.mark.every_backend
def test_only_distances_count():
    layer = RotaryAttention(HEADS)
    hidden = random_hidden()
    layer(hidden)
    randomize(layer)
    expected = to_numpy(layer(hidden))
    for positions in ([[0, 1, 2, 3, 4]], [[7, 8, 9, 10, 11]]):
        got = layer(hidden, positions=np.array(positions, "int32"))
        np.testing.assert_allclose(to_numpy(got), expected, atol=1e-5)
    other = layer(hidden, positions=np.array([[0, 1, 2, 3, 5]], "int32"))
    assert np.abs(to_numpy(other) - expected).max() > 1e-3


def test_probabilities_are_those_of_the_output():
    """With values that are all equal but for one token, the output tells its probability."""
    layer = RotaryAttention(1)
    hidden = random_hidden()[:1]
    layer(hidden)
    randomize(layer)
    probabilities = to_numpy(layer.compute_probabilities(hidden))[0, 0]
    value = to_numpy(layer.value(hidden))[0]
    expected = layer.output_projection((probabilities @ value)[None])
    np.testing.assert_allclose(to_numpy(layer(hidden)), to_numpy(expected), atol=1e-5)
