import numpy as np
import pytest

from keras_bert_suite.heads.base.label_encoding import encode_targets


@pytest.mark.parametrize(
    "labels",
    [[1.5, 0], np.array([1.5, 0]), [[1.5], [0]], np.array([1.5, 0], object), [np.float32(1.5), 0]],
)
def test_numbers(labels):
    encoded = encode_targets(labels, 1)
    assert encoded.tolist() == [[1.5], [0]] and encoded.dtype == "float32"


def test_several_targets():
    assert encode_targets([[1, 2], [3, 4]], 2).tolist() == [[1, 2], [3, 4]]
    assert encode_targets([], 2).shape == (0, 2)


@pytest.mark.parametrize(
    ("labels", "num_targets", "error"),
    [
        (["4.5"], 1, r"must be numbers, got '4.5' \(str\) at row 0"),
        (np.array([1.0, None], object), 1, r"got 'None' \(NoneType\) at row 1"),
        ([1.0, float("nan")], 1, "finite numbers, got nan at row 1"),
        ([1.0, 2.0], 2, r"has 2 targets, .* shape \(N, 2\), got \(2,\)"),
        ([[1.0, 2.0]], 1, r"shape \(N, 1\), got \(1, 2\)"),
    ],
)
def test_wrong_targets_are_named(labels, num_targets, error):
    with pytest.raises(ValueError, match=error):
        encode_targets(labels, num_targets)


@pytest.mark.backend("tensorflow")
def test_in_a_tensorflow_graph():
    import tensorflow as tf

    encode = tf.function(lambda labels: encode_targets(labels, 1))
    assert encode(tf.constant([1, 2])).numpy().tolist() == [[1], [2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="finite"):
        encode(tf.constant([float("nan")]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be numbers, got .*1"):
        encode(tf.constant(["1"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"got \(1, 2\)"):
        encode(tf.constant([[1.0, 2.0]]))
