import numpy as np
import pandas
import pytest

from keras_bert_suite.heads.base.class_weights import read_class_weights
from keras_bert_suite.heads.base.label_encoding import (
    check_token_labels,
    encode_labels,
    encode_tags,
    order_label_columns,
    weigh_token_labels,
)
from keras_bert_suite.heads.base.label_sets import encode_label_sets

NAMES = ["no", "yes", "maybe"]


@pytest.mark.parametrize(
    "labels",
    [["yes", "no"], np.array(["yes", "no"]), [b"yes", b"no"], [1, 0], np.array([1.0, 0.0]), (1, 0)],
)
def test_names_and_ids(labels):
    encoded = encode_labels(labels, NAMES)
    assert encoded.tolist() == [1, 0] and encoded.dtype == "int32"


def test_one_hot_and_soft_labels_pass():
    rows = [[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]
    encoded = encode_labels(rows, NAMES)
    assert encoded.tolist() == rows and encoded.dtype == "float32"
    assert encode_labels([["yes"], ["no"]], NAMES).tolist() == [1, 0]


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
        ([["yes", "no", "no"]], "Sets of labels need problem_type"),
        ([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0]], r"in \[0, 1\], got 2.0 at row 1, class 1"),
        ([[0.0, float("nan"), 0.0]], "got nan at row 0, class 1"),
        (["yes", "perhaps"], r"'perhaps' at row 1 is not one of .*'no', 'yes', 'maybe'"),
    ],
)
def test_wrong_labels_are_named(labels, error):
    names = ["None", "True", *NAMES] if "missing" in error else NAMES
    with pytest.raises(ValueError, match=error):
        encode_labels(labels, names)


@pytest.mark.backend("tensorflow")
def test_in_a_tensorflow_graph():
    import tensorflow as tf

    encode = tf.function(lambda labels: encode_labels(labels, NAMES))
    assert encode(tf.constant(["maybe", "no"])).numpy().tolist() == [2, 0]
    assert encode(tf.constant([2, 0], "int64")).numpy().tolist() == [2, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="perhaps"):
        encode(tf.constant(["perhaps"]))
    assert encode(tf.constant([[2], [0]])).numpy().tolist() == [2, 0]
    for wrong in (tf.constant([7], "int64"), tf.constant([0.5]), tf.constant([-1])):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"whole number in \[0, 3\)"):
            encode(wrong)
    assert encode(tf.constant([[0.25, 0.75, 0.0]])).numpy().tolist() == [[0.25, 0.75, 0.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="1.75 at row 0, class 1"):
        encode(tf.constant([[0.25, 1.75, 0.0]]))
    for wrong in (tf.eye(2), tf.constant([["no", "yes", "no"]])):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"of the shape \(N, 3\), got"):
            encode(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at row 0 is not one of"):
        encode(tf.ragged.constant([[1], [0, 2]]))
    # The shapes are known in the graph.
    assert encode.get_concrete_function(tf.TensorSpec(None, tf.string)).output_shapes == (None,)


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
        (["no", "yes", "perhaps"], "'no', 'yes', 'maybe', got 'no', 'yes', 'perhaps'. labels"),
        (["no", "yes"], "'maybe', got 'no', 'yes'."),
        (["no", "yes", "maybe", "no"], "'maybe', got 'no', 'yes', 'maybe', 'no'"),
    ],
)
def test_other_columns_are_named(columns, error):
    table = pandas.DataFrame(np.zeros((2, len(columns))), columns=columns)
    with pytest.raises(ValueError, match=error):
        order_label_columns(table, NAMES)


def test_tags_of_words():
    rows = np.array([["yes", 0, b"maybe"], []], object)
    encoded = encode_tags(rows, NAMES)
    assert [row.tolist() for row in encoded] == [[1, 0, 2], []]
    assert all(row.dtype == "int32" for row in encoded)
    for wrong in (3, -1, "perhaps"):
        with pytest.raises(ValueError, match=f"Label '?{wrong}'? at row 2, word 1 is not one of"):
            encode_tags([["no"], [], ["yes", wrong]], NAMES)


def test_tokens_without_a_label_have_no_weight():
    labels = check_token_labels(np.array([[-100, 2, 0], [1, -1, 0]], "int64"), NAMES)
    assert labels.dtype == "int32"
    ids, weights = weigh_token_labels(labels)
    assert ids.tolist() == [[0, 2, 0], [1, 0, 0]]
    assert weights.tolist() == [[0, 1, 1], [1, 0, 1]] and weights.dtype == "float32"
    _, weights = weigh_token_labels(labels, [2.0, 0.5])
    assert weights.tolist() == [[0, 2, 2], [0.5, 0, 0.5]]
    _, weights = weigh_token_labels(labels, [[1, 2, 3], [4, 5, 6]])
    assert weights.tolist() == [[0, 2, 3], [4, 0, 6]]


@pytest.mark.parametrize("labels", [[[0, 3]], [0, 1], [[0.0, 1.0]]])
def test_wrong_labels_of_tokens(labels):
    with pytest.raises(ValueError, match=r"integers \(N, L\), for each token a label id in \[0, 3"):
        check_token_labels(labels, NAMES)


@pytest.mark.parametrize(
    ("labels", "names", "readings"),
    [
        ([1, 2], ["1", "2", "3"], "The label 1 may be .* name '1', or .* the id 1, which is '2'"),
        ([3], ["1", "2", "3"], "The label 3 may be .* id 3, which is no class"),
        (np.array([0.0, 1.0]), ["1", "0"], "The label 0 may be .* id 0, which is '1'"),
        ([2], ["10", "2", "a"], "The label 2 may be .* id 2, which is .a."),
    ],
)
def test_numbers_that_may_be_ids_or_names(labels, names, readings):
    with pytest.raises(ValueError, match=readings):
        encode_labels(labels, names)
    tags = np.empty(1, object)
    tags[0] = [int(label) for label in labels]
    with pytest.raises(ValueError, match="The label . may be the class with the name"):
        encode_tags(tags, names)
    with pytest.raises(ValueError, match="The label . may be the class with the name"):
        encode_label_sets(tags, [*names, "another"])  # Lists of C numbers would be a matrix.
    with pytest.raises(ValueError, match="The label . may be the class with the name"):
        read_class_weights({int(labels[0]): 2.0}, names)
    named = [str(int(label)) for label in labels]
    assert encode_labels(named, names).tolist() == [names.index(name) for name in named]


def test_numbers_with_one_reading():
    """All names are their ids, or the numbers are no names."""
    assert encode_labels([1, 0, 2], ["0", "1", "2"]).tolist() == [1, 0, 2]
    assert encode_labels([0, 1], ["5", "7"]).tolist() == [0, 1]
    assert encode_labels([0, 1], ["0", "1", "5"]).tolist() == [0, 1]
    assert read_class_weights({1: 2.0}, ["0", "1"]).tolist() == [1, 2]


def test_labels_of_pytorch():
    torch = pytest.importorskip("torch")
    assert encode_labels(torch.tensor([2.0, 0.0], requires_grad=True), NAMES).tolist() == [2, 0]
    shares = torch.tensor([[0.25, 0.75, 0.0]], requires_grad=True)
    assert encode_labels(shares, NAMES).tolist() == [[0.25, 0.75, 0.0]]
