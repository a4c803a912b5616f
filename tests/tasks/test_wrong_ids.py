"""Ids of labels that are no ids, for each task that takes ids; and two pairs of texts in a list."""

import pytest
from small_tasks import PAIRS, TASKS, make_task

#: Labels of 12 rows in which `wrong` stands for an id, of each task that takes ids.
LABELS = {
    **dict.fromkeys(
        ("texts", "pairs", "relations", "documents", "choices"),
        lambda wrong: [0, 1] * 5 + [0, wrong],
    ),
    "label sets": lambda wrong: [[0], []] * 5 + [[0], [1, wrong]],
    "attributes": lambda wrong: {"tone": [None, 1] * 6, "length": [0, 1, 2] * 3 + [None, 1, wrong]},
    **dict.fromkeys(("words", "chains"), lambda wrong: [[0, 1, 0]] * 11 + [[0, wrong, 0]]),
    "spans": lambda wrong: [[(0, 1, 0)]] * 11 + [[(0, 1, wrong)]],
}  # fmt: skip


@pytest.fixture(scope="module", params=LABELS)
def task(request):
    """(a task, rows for it, function: an id -> labels)."""
    model, rows = make_task(request.param, "SegmentPacker")
    return model, rows[0], LABELS[request.param]


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
