import numpy as np
import pytest
from checkers import check_layer
from peer_weights import randomize, to_numpy

from keras_bert_suite.layers import WindowTransformer

VECTORS = np.random.default_rng(0).normal(size=(3, 4, 8)).astype("float32")
MASK = np.array([[1] * n + [0] * (4 - n) for n in (4, 2, 1)], "int32")


def test_it_is_whole():
    check_layer(
        WindowTransformer,
        {"num_layers": 1, "num_heads": 2, "dropout": 0.0},
        {"vectors": VECTORS, "padding_mask": MASK},
        (3, 8),
        # The softmax over keys does not depend on it.
        may_stay=("key/bias",),
    )


def test_a_new_layer_is_the_mean():
    got = to_numpy(WindowTransformer(num_heads=2)(VECTORS, MASK))
    wanted = [row[: mask.sum()].mean(0) for row, mask in zip(VECTORS, MASK, strict=True)]
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    np.testing.assert_allclose(got[2], VECTORS[2, 0], atol=1e-6)


@pytest.mark.every_backend
def test_padding_does_not_count_and_order_does():
    layer = WindowTransformer(num_heads=2)
    layer(VECTORS, MASK)
    randomize(layer)
    got = to_numpy(layer(VECTORS, MASK))
    garbage = np.where(MASK[:, :, None], VECTORS, np.nan)
    np.testing.assert_allclose(to_numpy(layer(garbage, MASK)), got, atol=1e-5)
    alone = to_numpy(layer(VECTORS[1:2, :2], MASK[1:2, :2]))
    np.testing.assert_allclose(alone, got[1:2], atol=1e-5)
    reversed_windows = to_numpy(layer(VECTORS[:, ::-1].copy(), np.ones_like(MASK)))
    assert np.abs(reversed_windows[0] - got[0]).max() > 1e-3
