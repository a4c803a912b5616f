import numpy as np
import pandas
import pytest

from keras_bert_suite.heads.base.label_sets import (
    choose_thresholds,
    encode_label_sets,
    read_batch_of_label_sets,
    read_label_sets,
)

NAMES = ["a", "b", "c"]
WANTED = [[0, 1, 0], [0, 0, 0], [1, 0, 1]]
SETS = [["b"], [], ["a", "c"]]
IDS = [[1], [], [0, 2]]


@pytest.mark.parametrize(
    "labels",
    [
        SETS,
        IDS,
        tuple(SETS),
        [{"b"}, (), np.array(["c", "a"])],
        [[b"b"], [], [b"a", b"c"]],
        pandas.Series(SETS),
        WANTED,
        np.array(WANTED),
        np.array(WANTED, "float64"),
        np.array([[0, True, 0], [0, 0, 0.0], [1, False, 1]], object),
        [np.array(row) for row in WANTED],
    ],
)
def test_every_form_of_labels(labels):
    encoded = encode_label_sets(read_label_sets(labels), NAMES)
    assert encoded.tolist() == WANTED and encoded.dtype == "float32"


def test_rows_of_equally_many_names():
    for labels in (np.array([["a", "b"], ["c", "a"]]), [["a", "b"], ["c", "a"]]):
        encoded = encode_label_sets(read_label_sets(labels), NAMES)
        assert encoded.tolist() == [[1, 1, 0], [1, 0, 1]]
    # As many names as labels are no numbers of a matrix.
    names = np.array([["a", "b", "c"], ["a", "a", "b"]], object)
    assert encode_label_sets(read_label_sets(names), NAMES).tolist() == [[1, 1, 1], [1, 1, 0]]
    assert encode_label_sets(read_label_sets([]), NAMES).shape == (0, 3)


def test_soft_labels_stay():
    labels = read_label_sets([[0.1, 0.9, 0.5]])
    np.testing.assert_allclose(encode_label_sets(labels, NAMES), [[0.1, 0.9, 0.5]], rtol=1e-6)


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ([["a"], ["d"]], r"'d' at row 1 is not one of the labels 'a', 'b', 'c'"),
        ([[0], [3, 1]], r"Label 3 at row 1 is not one of"),
        (["a", "b"], r"must be a list of labels, got 'a' \(str\) at row 0"),
        ([0, 1], r"must be a list of labels, got '0' \(int\) at row 0"),
        (np.array([0, 1]), r"must be a list of labels, got '0'"),
        ([["a"], None], r"got 'None' \(NoneType\) at row 1"),
        ([[0, 2, 1]], r"got 2 at row 0, class 1.*pass label names"),
        ([[0.0, float("nan"), 1.0]], "got nan at row 0, class 1"),
        (np.tile([[0, 1, 0, 1]], (2, 1)), "of the 3 labels, .* got 4 columns.*lists of lists"),
        (np.array([[0, 1]]), "got 2 columns"),
        (np.array([[0, True, 1, 0]], object), "got 4 columns"),
        ([[["a"]]], r"at row 0 is not one of"),
    ],
)
def test_wrong_labels_are_named(labels, error):
    with pytest.raises(ValueError, match=error):
        encode_label_sets(read_label_sets(labels), NAMES)


def test_columns_are_no_rows():
    """As the default functions of PyTorch and Grain make a batch of rows of lists."""
    for batch in ([("b", "a"), ("c", "a")], [np.array([0, 1]), np.array([1, 1])]):
        with pytest.raises(ValueError, match="Give each row an array of C zeros and ones"):
            read_batch_of_label_sets(batch)
    assert encode_label_sets(read_batch_of_label_sets(SETS), NAMES).tolist() == WANTED


@pytest.mark.backend("tensorflow")
def test_in_a_tensorflow_graph():
    import tensorflow as tf

    def encode(labels):
        signature = [tf.type_spec_from_value(labels)]
        function = tf.function(lambda x: encode_label_sets(x, NAMES), input_signature=signature)
        return function(labels).numpy().tolist()

    assert encode(tf.ragged.constant(SETS)) == WANTED
    assert encode(tf.ragged.constant(IDS)) == WANTED
    assert encode(tf.ragged.constant(IDS)[:0]) == []
    assert encode(tf.constant(WANTED)) == WANTED
    assert encode(tf.constant([["b"], ["a"]])) == [[0, 1, 0], [1, 0, 0]]
    # A row of a ragged tensor has ids, and is no matrix.
    assert encode(tf.ragged.constant([[0, 1, 1], [1, 1, 0]])) == [[1, 1, 0], [1, 1, 0]]
    assert encode(tf.ragged.constant([["b", "b"]])) == [[0, 1, 0]]
    for wrong in (tf.ragged.constant([["d"]]), tf.ragged.constant([[3]]), tf.constant([[2, 0, 0]])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            encode(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match="of the 3 labels, .* got 2 columns"):
        encode(tf.constant([[0, 1]]))
    of_any_width = tf.function(
        lambda x: encode_label_sets(x, NAMES), input_signature=[tf.TensorSpec((None, None))]
    )
    assert of_any_width(tf.constant(WANTED, "float32")).numpy().tolist() == WANTED
    with pytest.raises(tf.errors.InvalidArgumentError, match="got 2 columns"):
        of_any_width(tf.constant([[0.0, 1.0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a list of labels"):
        encode(tf.constant(["a"]))


def test_no_threshold_has_a_higher_f1():
    """The oracle tries all thresholds with scikit-learn."""
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    labels = rng.random((40, 3)) < [0.5, 0.1, 0.9]
    # Of few different values, so that some are equal.
    probabilities = (rng.integers(1, 12, (40, 3)) / 12).astype("float32")
    thresholds = choose_thresholds(labels, probabilities)
    for wanted, scores, threshold in zip(labels.T, probabilities.T, thresholds, strict=True):
        tried = [
            metrics.f1_score(wanted, scores > other, zero_division=0)
            for other in np.arange(12) / 12 + 0.01
        ]
        got = metrics.f1_score(wanted, scores > np.float32(threshold))
        assert got == pytest.approx(max(tried))


def test_thresholds_at_the_edges():
    labels = np.array([[0, 1, 0], [1, 1, 0]])
    neighbours = np.array([0.5, np.nextafter(np.float32(0.5), np.float32(1))], "float32")
    probabilities = np.stack([neighbours, neighbours, neighbours], axis=1)
    thresholds = choose_thresholds(labels, probabilities).astype("float32")
    assert (probabilities > thresholds).tolist() == [[False, True, False], [True, True, True]]
    assert thresholds[2] == 0.5
