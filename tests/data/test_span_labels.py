import dataclasses

import numpy as np
import pytest

from keras_bert_suite.heads.spans.labels import check_span_arrays, encode_spans, tags_to_spans
from keras_bert_suite.heads.tags.scores import score_spans

NAMES = ["LOC", "PER"]


@dataclasses.dataclass
class Entity:
    """As a prediction has it."""

    start: int
    end: int
    label: str


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        (["B-PER", "I-PER", "O", "B-LOC"], [(0, 2, "PER"), (3, 4, "LOC")]),
        (["S-PER", "B-LOC", "I-LOC", "E-LOC"], [(0, 1, "PER"), (1, 4, "LOC")]),
        ([], []),
    ],
)
def test_tags_become_spans(tags, spans):
    assert tags_to_spans(tags) == spans


def test_spans_of_rows():
    rows = [[(3, 4, "LOC"), (0, 2, 1), (0, 2, b"PER"), Entity(1, 5, "LOC")], []]
    first, second = encode_spans(rows, NAMES)
    assert first.tolist() == [[0, 2, 1], [1, 5, 0], [3, 4, 0]] and first.dtype == "int32"
    assert second.shape == (0, 3)


@pytest.mark.parametrize(
    ("span", "error"),
    [
        ((2, 2, "LOC"), "0 <= start < end .*got .2, 2, 'LOC'"),
        ((-1, 2, "LOC"), "got .-1, 2"),
        ((0, 1.5, "LOC"), "span of row 1 must be"),
        ("B-LOC", "span of row 1 must be"),
        ((0, 1, "ORG"), "Label 'ORG' at row 1"),
        ((0, 1, 2), "Label 2 at row 1"),
    ],
)
def test_wrong_spans(span, error):
    with pytest.raises(ValueError, match=error):
        encode_spans([[], [span]], NAMES)


def test_a_row_without_spans():
    with pytest.raises(ValueError, match="spans of row 1 must be a list .*, got None"):
        encode_spans([[], None], NAMES)


def test_spans_of_packed_arrays():
    spans = np.array([[[1, 1, 0], [2, 5, 1], [-1, -1, -1]]], "int64")
    checked = check_span_arrays(spans, NAMES)
    assert checked.tolist() == spans.tolist() and checked.dtype == "int32"
    for wrong in ([3, 2, 0], [1, 2, 2], [1, 2, -1]):
        with pytest.raises(ValueError, match=rf"\[{wrong[0]}, {wrong[1]}, {wrong[2]}\]"):
            check_span_arrays([[wrong]], NAMES)
    for wrong in (spans[0], spans[..., :2], spans.astype(float)):
        with pytest.raises(ValueError, match=r"must be integers \(N, M, 3\)"):
            check_span_arrays(wrong, NAMES)


def test_spans_that_overlap_are_counted_by_type_and_bounds():
    true = [[(0, 2, "PER"), (1, 3, "PER"), (5, 6, "LOC")], [(0, 1, "LOC")]]
    predicted = [[(0, 2, "PER"), (1, 4, "PER"), (5, 6, "PER")], [(0, 1, "LOC"), (0, 1, "LOC")]]
    scores = score_spans(true, predicted)
    assert scores["entities"] == 4
    assert scores["precision"] == scores["recall"] == scores["f1"] == 0.5
    assert scores["types"] == {
        "LOC": {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "entities": 2},
        "PER": {"precision": pytest.approx(1 / 3), "recall": 0.5, "f1": 0.4, "entities": 2},
    }
