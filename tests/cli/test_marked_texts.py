"""Entities marked in a text, for a terminal."""

import pytest

from keras_bert_cli.marked_texts import COLORS, mark_entities

TEXT = "the Bank of England 👩‍👩‍👧 paid"


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ([], TEXT),
        ([("ORG", "Bank of England")], "the [Bank of England ORG] 👩‍👩‍👧 paid"),
        (
            [("LOC", "England"), ("ORG", "Bank of England"), ("GPE", "England"), ("X", TEXT)],
            "[the [Bank of [[England GPE] LOC] ORG] 👩‍👩‍👧 paid X]",
        ),
        ([("A", "the"), ("B", "👩‍👩‍👧")], "[the A] Bank of England [👩‍👩‍👧 B] paid"),
        ([("A", "the Bank"), ("B", "Bank of")], "[the [Bank A] of B] England 👩‍👩‍👧 paid"),
    ],
)
def test_entities_stand_in_brackets(parts, wanted):
    starts = [TEXT.index(part) for _, part in parts]
    entities = [
        {"label": label, "start": start, "end": start + len(part)}
        for (label, part), start in zip(parts, starts, strict=True)
    ]
    assert mark_entities(TEXT, entities, {}).plain == wanted


def test_a_label_keeps_its_colour():
    colors = {}
    entity = {"label": "A", "start": 0, "end": 3}
    mark_entities(TEXT, [{**entity, "label": str(i)} for i in range(9)], colors)
    mark_entities(TEXT, [{**entity, "label": "3"}], colors)
    assert len(colors) == 9 and colors["3"] == COLORS[3]
