import numpy as np
import pytest
from peer_weights import to_numpy

from keras_bert_suite.layers.attention.rotary_positions import compute_sinusoids


@pytest.mark.every_backend
def test_sinusoids():
    positions = np.array([[0, 1, 2], [5, -3, 0]], "int32")
    angles = np.stack([positions * 10000 ** (-column / 5) for column in (0, 0, 2, 2, 4)], axis=-1)
    wanted = np.where(np.arange(5) % 2, np.cos(angles), np.sin(angles))
    np.testing.assert_allclose(to_numpy(compute_sinusoids(positions, 5)), wanted, atol=1e-6)


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_number_in_openvino():
    """NEZHA has the sinusoids of one distance for all keys that are far away."""
    tf, openvino = pytest.importorskip("tensorflow"), pytest.importorskip("openvino")
    add = tf.function(lambda x: x + compute_sinusoids(tf.constant(6), 4), autograph=False)
    graph = add.get_concrete_function(tf.TensorSpec([None, 4], name="x"))
    compiled = openvino.compile_model(openvino.convert_model(graph), "CPU")
    wanted = [np.sin(6), np.cos(6), np.sin(0.06), np.cos(0.06)]
    np.testing.assert_allclose(compiled(np.zeros((1, 4), "float32"))[0][0], wanted, atol=1e-2)
