"""What a mask must be, on every backend; under JAX and PyTorch they are made here."""

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import to_numpy

from keras_bert_suite.layers import Dropout

#: Each backend has masks of its own.
pytestmark = pytest.mark.every_backend

RATE = 0.1


def drawn(layer, shape=(64, 8, 128)):
    """bool array, where the layer dropped."""
    return to_numpy(layer(np.ones(shape, "float32"), training=True)) == 0


def deviations(masks, expected):
    """How many standard deviations the mean of each mask is from `expected`."""
    masks = masks.reshape(len(masks), -1)
    return (masks.mean(axis=1) - expected) / np.sqrt(expected * (1 - expected) / masks.shape[1])


def make_layer(seed=None):
    return Dropout(RATE, seed=seed)


@pytest.fixture(scope="module", params=["seeded", "unseeded"])
def masks(request):
    """32 masks: 8 calls of 4 layers whose seeds, if any, are near each other.

    Not nearer: under PyTorch Keras adds the number of the call to the seed.
    """
    keras.utils.set_random_seed(0)
    seeds = (0, 10, 20, 30) if request.param == "seeded" else (None,) * 4
    return np.stack([drawn(layer) for layer in map(make_layer, seeds) for _ in range(8)])


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("shape", [(101, 11), (7,)])
def test_what_stays_is_scaled(seed, shape):
    outputs = to_numpy(make_layer(seed)(np.full(shape, 3.0, "float32"), training=True))
    assert outputs.shape == shape
    np.testing.assert_allclose(outputs[outputs != 0], 3.0 / (1 - RATE), rtol=2e-5)


@pytest.mark.parametrize("training, rate", [(False, RATE), (True, 0.0)])
def test_nothing_is_dropped(training, rate):
    x = np.ones((4, 5), "float32")
    np.testing.assert_array_equal(to_numpy(Dropout(rate)(x, training=training)), x)


def test_the_share_is_the_rate(masks):
    z = deviations(masks, RATE)
    assert abs(z).max() < 4.5
    assert 0.5 < z.std() < 1.5


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("lag", [1, 2, 3])
def test_neighbours_are_independent(masks, axis, lag):
    both = masks & np.roll(masks, lag, axis=axis)
    assert abs(deviations(both, RATE**2)).max() < 4.5


def test_masks_are_independent(masks):
    pairs = np.stack([a & b for i, a in enumerate(masks) for b in masks[:i]])
    z = deviations(pairs, RATE**2)
    assert abs(z).max() < 5.0
    assert 0.8 < z.std() < 1.2


def test_the_seed_decides():
    first, second = make_layer(7), make_layer(7)
    for _ in range(2):
        np.testing.assert_array_equal(drawn(first), drawn(second))


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_it_computes_in_its_own_dtype(dtype):
    outputs = Dropout(RATE, dtype=dtype)(np.ones((50, 40), "float32"), training=True)
    assert keras.backend.standardize_dtype(outputs.dtype) == dtype.removeprefix("mixed_")
    np.testing.assert_allclose(to_numpy(ops.cast(outputs, "float32")).mean(), 1.0, atol=0.05)


def test_the_gradient_has_the_same_mask():
    """Trained for a step at learning rate 1, weights move by the mean of what stayed."""
    layer = make_layer(3)
    twin = make_layer(3)
    inputs = keras.Input((1000,))
    model = keras.Sequential([inputs, Scale(), layer])
    model.compile(keras.optimizers.SGD(1.0), loss=lambda y, outputs: ops.sum(outputs))
    model.train_on_batch(np.ones((1, 1000), "float32"), np.zeros((1, 1)))
    kept = to_numpy(twin(np.ones((1, 1000), "float32"), training=True))[0]
    np.testing.assert_allclose(1.0 - to_numpy(model.layers[0].scale), kept, rtol=1e-6)


class Scale(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=shape[1:], initializer="ones")

    def call(self, x):
        return x * self.scale


@pytest.mark.parametrize("seed", [None, 0])
def test_a_mask_of_another_shape_is_repeated(seed):
    layer = Dropout(0.5, noise_shape=(None, 1, 128), seed=seed)
    mask = drawn(layer)
    np.testing.assert_array_equal(mask, mask[:, :1].repeat(8, axis=1))
    assert 0.4 < mask.mean() < 0.6
