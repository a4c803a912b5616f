import numpy as np
import pandas
import pytest

from keras_bert_suite.data.label_encoding import encode_labels, order_label_columns

NAMES = ["no", "yes", "maybe"]


@pytest.mark.parametrize(
    "labels",
    [["yes", "no"], np.array(["yes", "no"]), [b"yes", b"no"], [1, 0], np.array([1.0, 0.0]), (1, 0)],
)
def test_names_and_ids(labels):
    encoded = encode_labels(labels, NAMES)
    assert encoded.tolist() == [1, 0] and encoded.dtype == "int32"


def test_one_hot_labels_pass():
    assert encode_labels(np.eye(3), NAMES).shape == (3, 3)
    assert encode_labels([[0.2, 0.8, 0.0]], NAMES).dtype == "float32"


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ([0, 3], r"Label 3 at row 1 is not a whole number in \[0, 3\)"),
        ([-1], "Label -1 at row 0"),
        ([0.5], "Label 0.5 at row 0"),
        ([1.0, float("nan")], "Label nan at row 1"),
        # Not the name of a class, which it is as a string.
        (np.array(["yes", None], object), "The label at row 1 is missing, None"),
        (pandas.Series([True, None], dtype="boolean"), "The label at row 1 is missing, <NA>"),
        (np.eye(2), r"soft labels of the shape \(N, 3\), got float64 of shape \(2, 2\)"),
        ([["yes", "no", "no"]], "For several labels of a row, build the task with problem_type"),
        ([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0]], r"in \[0, 1\], got 2.0 at row 1, class 1"),
        ([[0.0, float("nan"), 0.0]], "got nan at row 0, class 1"),
        (["yes", "perhaps"], r"'perhaps' at row 1 is not one of .*'no', 'yes', 'maybe'"),
    ],
)
def test_wrong_labels_are_named(labels, error):
    names = ["None", "True", *NAMES] if "missing" in error else NAMES
    with pytest.raises(ValueError, match=error):
        encode_labels(labels, names)


def test_in_a_tensorflow_graph():
    tf = pytest.importorskip("tensorflow")
    encode = tf.function(lambda labels: encode_labels(labels, NAMES))
    assert encode(tf.constant(["maybe", "no"])).numpy().tolist() == [2, 0]
    assert encode(tf.constant([2, 0], "int64")).numpy().tolist() == [2, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="perhaps"):
        encode(tf.constant(["perhaps"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"whole number in \[0, 3\)"):
        encode(tf.constant([7], "int64"))
    assert encode(tf.constant([[0.2, 0.8, 0.0]])).numpy().shape == (1, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be 3 numbers"):
        encode(tf.constant([[0.2, 1.8, 0.0]]))
    for wrong in (tf.eye(2), tf.constant([["no", "yes", "no"]]), tf.ragged.constant([[1], [0, 2]])):
        with pytest.raises(ValueError, match=r"of the shape \(N, 3\), got"):
            encode(wrong)


def test_columns_of_a_table_are_read_by_name():
    table = pandas.DataFrame([[1, 0, 0], [0, 1, 1]], columns=["maybe", "yes", "no"], index=[7, 9])
    assert order_label_columns(table, NAMES).tolist() == [[0, 0, 1], [1, 1, 0]]
    # Labels without names, and columns without names, are read by their place.
    for labels, names in (
        (table, ["0", "1", "2"]),
        (table.set_axis([0, 1, 2], axis=1), NAMES),
        (table[["yes"]], ["score"]),
        ([[1, 0, 0]], NAMES),
    ):
        assert order_label_columns(labels, names) is labels


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["no", "yes", "perhaps"], "This DataFrame misses 'maybe', and also has 'perhaps'. Rename"),
        (["no", "yes"], "This DataFrame misses 'maybe'"),
        (["no", "yes", "maybe", "no"], "This DataFrame repeats 'no'"),
    ],
)
def test_other_columns_are_named(columns, error):
    table = pandas.DataFrame(np.zeros((2, len(columns))), columns=columns)
    with pytest.raises(ValueError, match=error):
        order_label_columns(table, NAMES)
