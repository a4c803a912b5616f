"""Rows in memory: their columns, and what is no column."""

import re
from collections import UserDict
from types import MappingProxyType

import numpy as np
import pandas
import pytest
from small_texts import VOCABULARY
from transformers import BertTokenizer

from keras_bert_suite.data.arrays import as_array, map_arrays
from keras_bert_suite.data.rows import Rows

TEXTS = ["the good film", "bad"]


@pytest.mark.parametrize("kind", [dict, UserDict, MappingProxyType])
def test_any_mapping_has_columns(kind):
    # Their order is not that of the alphabet.
    rows = Rows.read(kind({"question": TEXTS, "context": TEXTS[::-1]}), [0, 1])
    assert rows.input_names == ("question", "context") and not rows.is_packed
    assert [column.tolist() for column in rows.inputs] == [TEXTS, TEXTS[::-1]]
    assert Rows.read_batch(kind({"first": TEXTS})).input_names == ("first",)
    packed = Rows.read(kind({"token_ids": np.zeros((2, 3))}))
    assert packed.is_packed and len(packed) == 2


def test_columns_of_other_lengths_are_named():
    features = {"price": np.arange(2.0), "new": np.arange(2.0)}
    with pytest.raises(ValueError, match="got 2 inputs, 1 labels, 2 features"):
        Rows.read(TEXTS, [0], features=features)
    with pytest.raises(ValueError, match="The columns are the texts a, and also b, which are no"):
        Rows.read({"a": TEXTS, "b": [1, 2]}, [0, 1])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *(([True, False], "b"), ([np.True_, np.False_], "b"), ([2, -1], "i")),
        *(([np.int32(2), np.uint8(1)], "i"), ([2.5, 1], "f"), ([np.float32(2.5), 1], "f")),
        *((["a", "b"], "O"), ([None, 1.0], "O"), ([np.True_, "b"], "O"), ([[1], [2, 3]], "O")),
    ],
)
def test_objects_are_numbers_if_each_of_them_is_one(values, kind):
    column = np.empty(2, dtype=object)
    column[:] = values
    for given in (column, pandas.Series(values, dtype=object)):
        array = as_array(given)
        assert (array.dtype.kind, array.tolist()) == (kind, values)


def test_columns_are_nested_to_any_depth():
    columns = (np.ones(2), None, (np.zeros(1), {"a": np.ones(3), "b": (None, np.ones(4))}))
    assert map_arrays(len, columns) == (2, None, (1, {"a": 3, "b": (None, 4)}))
    assert map_arrays(len, None) is None and map_arrays(len, [1, 2]) == 2


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert") / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n")
    return BertTokenizer.from_pretrained(str(path.parent))


@pytest.mark.parametrize("kind", [lambda arrays: arrays, dict])
@pytest.mark.parametrize("arguments", [{"padding": True, "return_tensors": "np"}, {}])
def test_the_arrays_of_a_tokenizer_of_transformers(theirs, kind, arguments):
    """A `BatchEncoding` is a mapping, and no dict. Its three names are no three texts."""
    arrays = kind(theirs(TEXTS, **arguments))
    for read in (Rows.read, Rows.read_batch):
        with pytest.raises(ValueError, match=re.escape('{"token_ids": x["input_ids"], ')):
            read(arrays)


def test_a_dict_of_single_texts():
    """The form of the question-answering pipeline of transformers."""
    with pytest.raises(ValueError, match="list of strings, got the string 'who wrote it'"):
        Rows.read({"question": "who wrote it", "context": "ada"})


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({0, 1}, r"an entry for each row, got \{0, 1\} \(set\)"),
        ((label for label in (0, 1)), r"an entry for each row, got .* \(generator\)"),
        ([[0, 1], [1]], "lists of different lengths.*multi_label_classification"),
    ],
    ids=["set", "generator", "lists"],
)
def test_what_is_no_column_of_labels(labels, error):
    with pytest.raises(ValueError, match=error):
        Rows.read(TEXTS, labels)
    with pytest.raises(ValueError, match="must be in an order, got a set"):
        Rows.read(set(TEXTS), [0, 1])


def test_a_table_is_no_column_of_texts():
    message = r"array of shape \(1, 2\). Pass several columns of texts as a tuple of columns"
    with pytest.raises(ValueError, match=message):
        Rows.read(np.array([TEXTS], object), [0])
