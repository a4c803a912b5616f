"""Rows of words in every form, against literal columns."""

import numpy as np
import pandas
import pytest

from keras_bert_suite.data.word_rows import check_span_shapes, read_word_rows

WORDS = [["Ada", "saw", "Rome"], ["Yes"]]
TAGS = [["B-PER", "O", "B-LOC"], ["O"]]


@pytest.mark.parametrize(
    "x",
    [
        WORDS,
        (WORDS,),
        [tuple(WORDS[0]), np.array(["Yes"])],
        {"words": WORDS},
        pandas.DataFrame({"words": WORDS}),
        pandas.Series(WORDS),
    ],
    ids=lambda x: type(x).__name__,
)
def test_every_form(x):
    for tags in (TAGS, pandas.Series(TAGS), [tuple(TAGS[0]), np.array(["O"], object)]):
        rows = read_word_rows(x, tags, [0.5, 2.0])
        assert [list(row) for row in rows.inputs[0]] == WORDS and len(rows.inputs) == 1
        assert [list(row) for row in rows.labels] == TAGS
        assert rows.weights.tolist() == [0.5, 2.0]
        named = not isinstance(x, (list, tuple, pandas.Series))
        assert rows.input_names == (("words",) if named else None)


def test_texts_stay_texts():
    assert read_word_rows(["Ada saw", b"Rome"]).inputs[0].tolist() == ["Ada saw", b"Rome"]


def test_rows_of_equally_many_words():
    rows = read_word_rows([["a", "b"], ["c", "d"]], [[0, 1], [1, 0]])
    assert rows.inputs[0].tolist() == [["a", "b"], ["c", "d"]]
    assert rows.labels.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        ([["a", 1]], None, r"got .'a', 1. \(list\) at row 0"),
        ([["a"], 7], None, r"got 7 \(int\) at row 1"),
        ("text", None, "got the string 'text'"),
        ((WORDS, WORDS), None, "x has 2 columns, wanted one"),
        (
            WORDS,
            TAGS[:1],
            r"lists of tags for 2 rows of words, .* of shape \(1",
        ),
        (WORDS, [["O"], "O"], "label for each word, got 'O' for all of row 1"),
    ],
)
def test_wrong_rows(x, y, error):
    with pytest.raises(ValueError, match=error):
        read_word_rows(x, y)


def test_wrong_weights():
    for x, y in ((WORDS, TAGS), ({"token_ids": np.ones((2, 3), int)}, np.zeros((2, 3), int))):
        with pytest.raises(ValueError, match="at least 0, got -1.0 at row 1"):
            read_word_rows(x, y, [1.0, -1.0])


def test_shapes_of_packed_arrays():
    packed = {"token_ids": np.ones((2, 4), "int32")}
    labels = np.zeros((2, 4), int)
    for weights in (None, [1.0, 2.0], np.ones((2, 4))):
        assert read_word_rows(packed, labels, weights).labels.tolist() == labels.tolist()
    with pytest.raises(ValueError, match=r"labels .* must .* \(2, 4\), got \(2, 3\)"):
        read_word_rows(packed, labels[:, 1:])
    with pytest.raises(ValueError, match=r"\(2,\) or \(2, 4\), got \(2, 3\)"):
        read_word_rows(packed, labels, np.ones((2, 3)))
    spans = np.zeros((2, 5, 3), int)
    read_word_rows(packed, spans, [1.0, 2.0], check_span_shapes)
    with pytest.raises(ValueError, match="have a weight for each row"):
        read_word_rows(packed, spans, np.ones((2, 4)), check_span_shapes)
