"""Ids of labels that are no ids, for each task that takes ids; and two pairs of texts in a list."""

import numpy as np
import pytest
from heads.cases import CASES, PAIRS, TASKS
from small_tasks import make_task
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs


@pytest.fixture(
    scope="module", params=[name for name, case in CASES.items() if case.wrong_labels is not None]
)
def task(request):
    """(a task, rows for it, function: an id -> labels)."""
    model, rows = make_task(request.param, "SegmentPacker")
    return model, rows[0], CASES[request.param].wrong_labels


@pytest.mark.parametrize("wrong", [-1, -100, 3, 0.5])
def test_an_id_that_is_none(task, wrong):
    model, x, label = task
    with pytest.raises(ValueError, match="(?i)label|index of the right ending"):
        model.data.read(x, label(wrong), labelled=True)
    model.data.read(x, label(0), labelled=True)


def test_minus_one_is_no_label():
    model, (x, _) = make_task("texts", "SegmentPacker")
    with pytest.raises(ValueError, match="Label -1 at row 1 .* no label, leave out its 2 rows"):
        model.data.read(x, [0, -1, 1, -1] + [0] * 8, labelled=True)


@pytest.mark.parametrize("task", sorted({*TASKS} - {"words", "chains", "spans"}))
def test_two_pairs_are_no_two_columns(task):
    """In a list. The tasks that are left out take lists of words."""
    model, _ = make_task(task, "SegmentPacker")
    pairs = list(zip(*PAIRS, strict=True))[:2]
    for x in (pairs, list(map(list, pairs))):
        with pytest.raises(ValueError, match=r"tuple\(map\(list, zip\(\*"):
            model.data.read(x)


def make_writer(cls):
    backbone = kbs.BartBackbone(**ONE_LAYER)
    return cls(backbone, preprocessor=kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16))


@pytest.mark.parametrize(
    "kind",
    [
        *("texts", "words", "continuations", "targets", "corrupted texts"),
        *(kbs.Seq2Seq, kbs.Seq2SeqPretrainer),  # On a BartBackbone, whose encoder is a part of it.
    ],
)
def test_tokens_that_the_encoder_does_not_know(kind):
    model = make_task(kind)[0] if isinstance(kind, str) else make_writer(kind)
    size = len(VOCABULARY)
    names = [name for name in model.input if name in model.data.encoder.names]
    x = {name: np.ones((2, 4), "int32") for name in names}
    model.data.read(x)
    for wrong in (-1, size):
        ids = np.array([[1, 2, wrong, 0]] * 2)
        with pytest.raises(ValueError, match=rf"token_ids must be in \[0, {size}\)"):
            model.data.read({**x, "token_ids": ids})
