"""Labels of questions in every form, against literal spans."""

import numpy as np
import pandas
import pytest

from keras_bert_suite.heads.questions.answer_spans import (
    check_token_spans,
    read_accepted_answers,
    read_answer_spans,
)

CONTEXTS = ["Two seas.", "A sea.", "Sea, sea."]
SPANS = [[4, 8], [-1, -1], [0, 3]]
TEXTS, STARTS = ["seas", "", "Sea"], [4, -1, 0]
SQUAD = [
    {"text": ["seas", "Two"], "answer_start": [4, 0]},
    {"text": [], "answer_start": []},
    {"text": ["Sea"], "answer_start": [0]},
]


@pytest.mark.parametrize(
    "labels",
    [
        SPANS,
        np.array(SPANS),
        np.array(SPANS, "float32"),
        ([4, -1, 0], [8, -1, 3]),
        (np.array([4, -1, 0]), np.array([8, -1, 3])),
        SQUAD,
        [{"text": b"seas", "answer_start": 4}, (-1, -1), {"text": "Sea", "answer_start": 0}],
        {"text": TEXTS, "answer_start": STARTS},
        pandas.DataFrame({"answer_start": STARTS, "text": TEXTS}),
        pandas.Series([tuple(span) for span in SPANS]),
    ],
    ids=str,
)
def test_every_form(labels):
    spans = read_answer_spans(labels, [CONTEXTS[0], b"A sea.", CONTEXTS[2]])
    assert spans.tolist() == SPANS and spans.dtype == "int32"


def test_tensors_and_no_rows():
    import torch

    assert read_answer_spans(torch.tensor(SPANS), CONTEXTS).tolist() == SPANS
    # As PyTorch's `default_collate` makes a batch of pairs.
    columns = [torch.tensor([4, -1, 0]), torch.tensor([8, -1, 3])]
    assert read_answer_spans(columns, CONTEXTS).tolist() == SPANS
    # Two rows that are lists are no columns.
    assert read_answer_spans([[4, 8], [0, 1]], CONTEXTS[:2]).tolist() == [[4, 8], [0, 1]]
    assert read_answer_spans([], []).shape == (0, 2)


def test_all_accepted_answers():
    assert read_accepted_answers(SQUAD, CONTEXTS) == [["seas", "Two"], [], ["Sea"]]
    assert read_accepted_answers(SPANS, CONTEXTS) == [["seas"], [], ["Sea"]]


def test_answers_without_a_place():
    """They count in scores. Training takes the first answer that has a place."""
    labels = [{"text": ["lake", "seas"], "answer_start": [-1, 4]}]
    assert read_answer_spans(labels, CONTEXTS[:1]).tolist() == SPANS[:1]
    assert read_accepted_answers(labels, CONTEXTS[:1]) == [["lake", "seas"]]
    labels = [{"text": ["Two", "seas"], "answer_start": [0, 4]}]
    assert read_answer_spans(labels, CONTEXTS[:1]).tolist() == [[0, 3]]
    with pytest.raises(ValueError, match="Row 0: the answer 'lake' is not at character -1"):
        read_answer_spans([{"text": ["lake"], "answer_start": [-1]}], CONTEXTS[:1])


@pytest.mark.parametrize("label", [(4, 10), (-1, 3), (3, 3), (5, 4)])
def test_spans_outside_of_the_context(label):
    with pytest.raises(ValueError, match="label of row 0 is .* context has 9 characters"):
        read_answer_spans([label], CONTEXTS[:1])
    assert read_answer_spans([(0, 9)], CONTEXTS[:1]).tolist() == [[0, 9]]


def test_tokens_of_answers():
    spans = check_token_spans(np.array([[0, 0], [2, 7]], "int64"), (2, 8))
    assert spans.tolist() == [[0, 0], [2, 7]] and spans.dtype == "int32"
    for wrong in ([3, 2], [-1, 2], [1, 8]):
        with pytest.raises(ValueError, match="from 0, .* to 7, got int"):
            check_token_spans([[0, 0], wrong], (2, 8))
    with pytest.raises(ValueError, match="got uint8"):
        check_token_spans(np.array([[3, 2]], "uint8"), (1, 8))
    for wrong in ([[0.0, 1.0]], [[0, 1, 2]], [[0, 1], [0, 1]]):
        with pytest.raises(ValueError, match=r"must be integers \(1, 2\)"):
            check_token_spans(wrong, (1, 8))
