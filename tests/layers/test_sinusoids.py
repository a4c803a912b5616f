import numpy as np
from peer_weights import to_numpy

from keras_bert_suite.layers.attention.sinusoids import compute_sinusoids


def test_sinusoids():
    positions = np.array([[0, 1, 2], [5, -3, 0]], "int32")
    angles = np.stack([positions * 10000 ** (-column / 5) for column in (0, 0, 2, 2, 4)], axis=-1)
    wanted = np.where(np.arange(5) % 2, np.cos(angles), np.sin(angles))
    np.testing.assert_allclose(to_numpy(compute_sinusoids(positions, 5)), wanted, atol=1e-6)
