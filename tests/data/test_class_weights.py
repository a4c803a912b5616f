import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from keras_bert_suite.heads.base.class_weights import (
    balance_classes,
    read_class_weights,
    weight_rows,
)

NAMES = ["no", "yes", "maybe"]


@pytest.mark.parametrize(
    ("class_weight", "wanted"),
    [
        ({"yes": 3}, [1, 3, 1]),
        ({0: 0.5, "maybe": 2.0}, [0.5, 1, 2]),
        ({np.int64(2): 0}, [1, 1, 0]),
        ({}, [1, 1, 1]),
    ],
)
def test_weights_by_name_or_id(class_weight, wanted):
    weights = read_class_weights(class_weight, NAMES)
    assert weights.dtype == "float32" and weights.tolist() == wanted


@pytest.mark.parametrize(
    ("class_weight", "error"),
    [
        ({"yess": 3}, "'yess': 3, wanted one of the labels"),
        ({3: 1.0}, "has 3: 1.0, wanted"),
        ({-1: 1.0}, "has -1: 1.0, wanted"),
        ({"yes": -1.0}, "'yes': -1.0, .* at least 0"),
        ({"yes": float("nan")}, "'yes': nan, wanted"),
        (np.array([0.5, 1.0, 2.0]), r"got \[0.5 1.  2. \]. .* dict\(enumerate\(class_weight\)\)"),
        ([0.5, 1.0, 2.0], r"got \[0.5, 1.0, 2.0\]"),
        ("even", "got even"),
    ],
)
def test_wrong_weights(class_weight, error):
    with pytest.raises(ValueError, match=error):
        read_class_weights(class_weight, NAMES)


WEIGHTS = np.array([1, 3, 2], "float32")
#: The class with the largest value counts.
LABELS = [[2, 1, 1], np.eye(3)[[2, 1, 1]], np.array([[0.3, 0.3, 0.4], [0, 0.6, 0.4], [0, 1, 0]])]


@pytest.mark.parametrize("labels", LABELS)
def test_rows_weigh_what_their_class_does(labels):
    assert weight_rows(np.array(labels), WEIGHTS).tolist() == [2, 3, 3]


@pytest.mark.backend("tensorflow")
def test_in_a_tensorflow_graph():
    import tensorflow as tf

    for labels in LABELS:
        in_graph = tf.function(lambda labels: weight_rows(labels, WEIGHTS))
        assert in_graph(tf.constant(labels)).numpy().tolist() == [2, 3, 3]


def test_balanced_weights_are_those_of_scikit_learn():
    class_ids = [2] * 5 + [0] * 2  # One class has no row.
    weights = balance_classes(class_ids, NAMES)
    weights = [weights[NAMES[i]] for i in class_ids]
    np.testing.assert_allclose(weights, compute_sample_weight("balanced", class_ids))
