import collections

import numpy as np
import pandas
import pytest

from keras_bert_suite.data.input_dataset import is_dataset, num_batches
from keras_bert_suite.data.row_orders import shuffled
from keras_bert_suite.data.rows import Rows, read_batch
from keras_bert_suite.runs.batches import RowBatches


def test_a_batch_is_a_function_of_its_index():
    rows = Rows({"x": np.arange(10)}, {"y": np.arange(10) * 2})
    batches = RowBatches(rows, 4, shuffled(10, seed=0))
    assert len(batches) == 3
    epochs = [np.concatenate([batches[3 * e + i].inputs["x"] for i in range(3)]) for e in range(2)]
    assert not np.array_equal(*epochs)
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    rows = batches[5]
    x, y = rows.inputs["x"], rows.labels["y"]
    assert (y == 2 * x).all() and len(x) == 2 and rows.weights is None
    np.testing.assert_array_equal(rows.sources, x)
    assert rows.epoch == 1
    assert len(list(batches.repeat(2).to_iter_dataset())) == 6
    np.testing.assert_array_equal(batches.repeat(2)[5].inputs["x"], x)


def test_strings_are_kept_as_objects():
    rows = Rows.read(["a", "b" * 100_000])
    assert rows.inputs[0].dtype == object and rows.inputs[0].nbytes < 100


@pytest.mark.parametrize(
    ("weights", "shown"),
    [
        ([1.0, -0.5], "-0.5"),
        ([0.0, float("nan")], "nan"),
        ([1, float("inf")], "inf"),
        ([1.0, None], "None"),
    ],
)
def test_wrong_weights(weights, shown):
    with pytest.raises(ValueError, match=f"finite numbers of at least 0, got {shown} at row 1"):
        Rows.read(["a", "b"], [0, 1], weights)


def test_tables_of_pandas():
    table = pandas.DataFrame({"first": ["a", "b"], "second": ["c", "d"], "label": [0, 1]})
    rows = Rows.read(table[["first", "second"]], table["label"])
    assert rows.input_names == ("first", "second")
    assert [column.tolist() for column in rows.inputs] == [["a", "b"], ["c", "d"]]
    assert rows.labels.tolist() == [0, 1]
    assert Rows.read(table["first"]).inputs[0].tolist() == ["a", "b"]
    assert Rows.read(table[["first"]]).input_names == ("first",)
    strings = table["first"].astype("string")
    assert Rows.read(strings).inputs[0].tolist() == ["a", "b"]
    assert Rows.read({"first": ["a"], "second": ["b"]}).input_names == ("first", "second")


def test_numbers_in_columns_of_objects():
    """As pandas has them after rows with a missing value were dropped."""
    table = pandas.DataFrame({"label": [0, None, 1], "weight": [0.5, None, 2]}, dtype=object)
    table = table.dropna()
    rows = Rows.read(["a", "b"], table["label"], table["weight"])
    assert rows.labels.tolist() == [0, 1] and rows.labels.dtype.kind == "i"
    assert rows.weights.tolist() == [0.5, 2.0]
    flags = Rows.read(["a", "b"], pandas.Series([True, False], dtype=object)).labels
    assert flags.tolist() == [True, False] and flags.dtype == bool
    assert Rows.read(["a"], np.array([None])).labels.dtype == object


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("text", [1]), "list of strings, got the string 'text'"),
        (([("a", "b")], [1]), "tuple of two lists"),
        ((["a", None], [1, 0]), r"got None \(NoneType\) at row 1"),
        ((np.array(["a", float("nan")], object), [1, 0]), r"got nan \(float\) at row 1"),
        ((pandas.Series(["a", None, "c"]), [1, 0, 1]), "at row 1"),
        ((pandas.DataFrame({"s": ["a", "b"], "t": ["a", None]}), [1, 0]), "at row 1 of 't'"),
        (([1, 2], [1, 0]), r"got 1 \(int\) at row 0"),
        ((("a", "b"), [1, 0]), "a tuple is a pair of columns.*list"),
        ((["a", "b"], [1]), "got 2 inputs, 1 labels"),
        (((["a", "b"], ["c"]), [1, 2]), "got 2 and 1 inputs, 2 labels"),
    ],
)
def test_bad_columns(arguments, error):
    with pytest.raises(ValueError, match=error):
        Rows.read(*arguments)


def test_collections_of_strings_are_rows():
    table = {"a": "first", "b": "second"}
    for texts in (table.values(), collections.deque(table.values())):
        assert not is_dataset(texts)
        assert Rows.read(texts, (1, 0)).inputs[0].tolist() == ["first", "second"]
    # What `zip(*rows)` makes.
    assert Rows.read(["a", "b"], ("yes", "no")).labels.tolist() == ["yes", "no"]
    assert Rows.read(["a", "b"], [1, 0], (0.5, 2.0)).weights.tolist() == [0.5, 2.0]
    assert is_dataset(collections.deque([(["a"], [1])]))


def test_split():
    first, last = Rows({"x": np.arange(10)}, np.arange(10)).split(0.2)
    assert first.inputs["x"].tolist() == list(range(8)) and last.labels.tolist() == [8, 9]
    with pytest.raises(ValueError, match="leaves 0 of 1 rows"):
        Rows({"x": np.arange(1)}).split(0.5)


@pytest.mark.parametrize(
    ("batch", "wanted"),
    [
        (["a", "b"], (["a", "b"],)),
        (("a", "b"), (("a", "b"),)),
        (np.array(["a", "b"]), (["a", "b"],)),
        ([("a", "b"), ("c", "d")], (("a", "b"), ("c", "d"))),
        ((["a"], ["b"]), (["a"], ["b"])),
        ([None, "b"], ([None, "b"],)),  # The tokenizer names the missing text.
    ],
)
def test_texts_of_a_batch(batch, wanted):
    assert read_batch(batch) == (wanted, None)
    named = {"second": [None, "b"], "first": [None, "a"]}
    assert read_batch(named) == (([None, "b"], [None, "a"]), ("second", "first"))


def test_a_batch_of_packed_arrays_passes():
    batch = {"token_ids": np.ones((2, 3), "int32")}
    arrays, names = read_batch(batch)
    assert arrays["token_ids"] is batch["token_ids"] and names is None
    for single in ("text", np.array("text")):
        with pytest.raises(ValueError, match=r"dataset.batch\(batch_size\)"):
            read_batch(single)


@pytest.mark.backend("tensorflow")
def test_what_is_a_dataset():
    import tensorflow as tf

    dataset = tf.data.Dataset.range(6).batch(4)
    assert (
        is_dataset(dataset) and num_batches(dataset) == 2 and num_batches(dataset.repeat()) is None
    )
    with pytest.raises(ValueError, match="no batches"):
        num_batches(dataset.take(0))
    assert not any(map(is_dataset, (["a"], ("a", "b"), {}, "a", np.ones(1), tf.ones(1))))
