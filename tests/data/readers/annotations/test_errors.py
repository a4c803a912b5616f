"""Spans that are wrong: an error, corrected or left out, and counted."""

import json

import pytest

from keras_bert_suite import read_annotations

TEXT = "Ada met Grace, and Ada left. "
WITH_TEXT = {"start": 8, "end": 13, "label": "PER", "text": "Grace"}

#: problem -> (a span, its message, its place with errors="fix" or None).
WRONG = {
    "a span that is empty or not within its text": [
        ([0, 30, "X"], "the span 0 to 30 with the label 'X' is empty or not within", None),
        ([-3, 3, "X"], "the span -3 to 3", None),
        ([3, 3, "X"], "the span 3 to 3", None),
        ([5, 2, "X"], "the span 5 to 2", None),
        ([10**30, 10**31, "X"], "is empty or not within", None),
    ],
    "a span of spaces alone": [([3, 4, "X"], "holds nothing but spaces", None)],
    "a span with spaces at its border": [
        ([0, 4, "X"], "has spaces at its border. Without them it is 'Ada'", (0, 3)),
        ([13, 29, "X"], "Without them it is ', and Ada left.'", (13, 28)),
    ],
    "a span without a label": [
        ([0, 3, None], "the span 0 to 3 with the label None has no label of an entity", None),
        ([0, 3, ""], "has no label", None),
        ([0, 3, []], "has no label", None),
        ([0, 3, "O"], "with the label 'O' has no label", None),
    ],
    "a span whose text is elsewhere": [
        ({**WITH_TEXT, "start": 7, "end": 11}, r"text 'Grace', which is at \(8, 13\)", (8, 13)),
        ({**WITH_TEXT, "text": "Ada"}, r"which is at \(0, 3\)", (0, 3)),
        ({**WITH_TEXT, "text": "Ada", "start": 21, "end": 24}, r"which is at \(19, 22\)", (19, 22)),
        ({**WITH_TEXT, "text": "Ada", "start": 90, "end": 93}, r"which is at \(19, 22\)", (19, 22)),
    ],
    "a span whose text is nowhere": [
        ({**WITH_TEXT, "text": "Bob"}, "should have the text 'Bob', which is nowhere", None),
    ],
}  # fmt: skip
CASES = [(problem, *case) for problem, cases in WRONG.items() for case in cases]
RIGHT = [([8, 13, "PER"], (8, 13, "PER")), ([23, 27, "VERB"], (23, 27, "VERB"))]


def write(path, *texts):
    """A file in which most spans are right, so that nothing is said of how they count."""
    rows = []
    for spans in texts:
        spans = [
            s if isinstance(s, dict) else {"start": s[0], "end": s[1], "label": s[2]} for s in spans
        ]
        rows.append({"text": TEXT, "spans": spans})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(("problem", "span", "message", "fixed"), CASES)
def test_wrong_spans(problem, span, message, fixed, tmp_path):
    right = [span for span, _ in RIGHT]
    path = write(tmp_path / "all.jsonl", right, [*right, span], right)
    wanted = [read for _, read in RIGHT]
    with pytest.raises(
        ValueError, match=f"all.jsonl, line 2: .*{message}.* 1 of 3 texts have such"
    ):
        read_annotations(path)
    for errors, place in (("fix", fixed), ("skip", None)):
        with pytest.warns(UserWarning, match=f"of 3 texts 1 with {problem}, [a-z ]+.$"):
            read = read_annotations(path, errors=errors)
        label = span["label"] if isinstance(span, dict) else span[2]
        assert read.y[1] == sorted({*wanted, *([(*place, label)] if place else [])})
        assert read.y[0] == read.y[2] == wanted
        assert read.corrected == {problem: [2]} and not read.left_out
    # A text without a span that can be read is left out.
    path = write(tmp_path / "all.jsonl", right, right, [span], right)
    with pytest.warns(UserWarning, match="1 left out"):
        read = read_annotations(path, errors="skip")
    assert read.lines == [1, 2, 4] and read.left_out == {"no span that can be read": [3]}
    with pytest.raises(ValueError, match="no texts with annotations.* no span that can be read: 1"):
        read_annotations(write(tmp_path / "one.jsonl", [span]), errors="skip", offsets="characters")


def test_each_text_counts_once(tmp_path):
    """Of several wrong texts, of which one has two errors of one kind, and one of two kinds."""
    right, ((empty, *_), *_), ((spaces, *_),) = (
        *([span for span, _ in RIGHT], WRONG["a span that is empty or not within its text"]),
        WRONG["a span of spaces alone"],
    )
    others = [[*right, empty, empty], right, [*right, spaces], [*right, empty, spaces], right]
    path = write(tmp_path / "all.jsonl", *others)
    with pytest.raises(ValueError, match="3 of 5 texts have such errors"):
        read_annotations(path)
    said = "of 5 texts 2 with a span that is empty .*; 2 with a span of spaces alone"
    with pytest.warns(UserWarning, match=said):
        read = read_annotations(path, errors="skip")
    assert [*read.corrected.values()] == [[1, 4], [3, 4]]


def test_repeated_nested_and_crossing_spans_are_read(tmp_path):
    spans = [[0, 13, "A"], [0, 3, "B"], [0, 3, "B"], [0, 3, "C"], [8, 18, "D"], [0, 3, ["B", "E"]]]
    read = read_annotations(write(tmp_path / "all.jsonl", spans))
    assert read.y == [[(0, 3, "B"), (0, 3, "C"), (0, 3, "E"), (0, 13, "A"), (8, 18, "D")]]


def test_places_in_other_forms_of_numbers(tmp_path):
    assert read_annotations(write(tmp_path / "all.jsonl", [["0", 3.0, 7]])).y == [[(0, 3, "7")]]
