"""What the places of a file count."""

import io
import json
import random

import pytest

from keras_bert_suite import read_annotations
from keras_bert_suite.heads.tags.annotations.offsets import Ruler

ALPHABET = [
    "a",
    "é",
    "e\u0301",
    "京",
    " ",
    "\r\n",
    "\n",
    "\r",
    "\U0001f600",
    "\U00020000",
    "\ufeff",
]


def count(text, offsets):
    """How many things a text has, by Python's own codecs."""
    if offsets == "utf16":
        return len(text.encode("utf-16-le")) // 2
    if offsets == "newlines":
        # A lone carriage return is one character in both ways.
        return len(io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8").read())
    return len(text)


@pytest.mark.parametrize("offsets", ["characters", "utf16", "newlines", "inclusive"])
def test_places_of_random_texts(offsets):
    rng = random.Random(0)
    for _ in range(300):
        text = "".join(rng.choices(ALPHABET, k=rng.randrange(1, 12)))
        ruler = Ruler(text, offsets)
        for start in range(len(text)):
            for end in range(start + 1, len(text) + 1):
                if offsets == "newlines" and any(
                    text[at - 1 : at + 1] == "\r\n" for at in (start, end)
                ):
                    continue  # No place of the file is between the two.
                ends = count(text[:end], offsets) - (offsets == "inclusive")
                assert ruler.find(count(text[:start], offsets), ends) == (start, end)
        assert ruler.find(-1, 1) is None and ruler.find(0, len(text) * 2 + 1) is None
        assert ruler.find(1, 0) is None


def test_half_of_an_emoji_is_no_place():
    assert Ruler("\U0001f600a", "utf16").find(1, 3) is None


def doccano(*rows):
    return "".join(json.dumps({"text": text, "label": spans}) + "\n" for text, *spans in rows)


def label_studio(*rows):
    """Rows of a text and (start, end, label, the text of the span) of each span."""
    regions = [
        [
            {"start": s, "end": e, "labels": [kind], **({"text": part[0]} if part else {})}
            for s, e, kind, *part in spans
        ]
        for _, *spans in rows
    ]
    return json.dumps(
        [
            {
                "id": number,
                "data": {"text": text},
                "annotations": [{"result": [{"value": r} for r in region]}],
            }
            for number, ((text, *_), region) in enumerate(zip(rows, regions, strict=True))
        ]
    )


def spacy(*rows):
    return json.dumps([[text, {"entities": spans}] for text, *spans in rows])


FIRE = "\U0001f692 drives to Rome"
LINES = "one\r\ntwo\r\nRome"
UNITS = "places that count UTF-16 code units"
READ_AS = "does not say what the places of its spans count.*They are read as "


@pytest.mark.parametrize(
    ("content", "found", "warning"),
    [
        # The texts of the spans say it.
        (label_studio((FIRE, (13, 17, "LOC", "Rome"))), "Rome", None),
        (label_studio((FIRE, (12, 16, "LOC", "Rome"))), "Rome", None),
        # The borders of words say it.
        (label_studio((FIRE, (13, 17, "LOC"))), "Rome", READ_AS + "UTF-16 code units"),
        (doccano((FIRE, (13, 17, "LOC"))), "Rome", READ_AS + "UTF-16.*offsets='utf16'"),
        (doccano((FIRE, (12, 16, "LOC"))), "Rome", None),
        # Nothing says it: Chinese has no borders of words.
        (doccano(("\U0001f692去北京大学", (2, 4, "LOC"))), "北京", READ_AS + "characters"),
        # The span is before the emoji, or there is none.
        (doccano(("Rome \U0001f692", (0, 4, "LOC"))), "Rome", None),
        (doccano(("去北京大学", (1, 3, "LOC"))), "北京", None),
    ],
)
def test_tools_that_may_count_code_units(content, found, warning, tmp_path, recwarn):
    path = tmp_path / "all.jsonl"
    path.write_text(content)
    if warning:
        with pytest.warns(UserWarning, match=warning):
            read = read_annotations(path)
    else:
        read = read_annotations(path)
    ((start, end, _),) = read.y[0]
    assert read.x[0][start:end] == found
    is_moved = (
        "(13, 17" in str(json.loads(content)).replace("[13", "(13") or '"start": 13' in content
    )
    assert bool(read.corrected) == is_moved
    assert not recwarn.list


@pytest.mark.parametrize(
    ("content", "offsets", "others"),
    [
        (spacy(("Hello from India", (11, 15, "GPE"))), "inclusive", "characters"),
        (spacy(("\U0001f600 Hello from India", (14, 19, "GPE"))), "utf16", "characters"),
        (spacy((LINES, (8, 12, "GPE"))), "newlines", "characters"),
        (doccano((LINES, (8, 12, "GPE"))), "newlines", "characters"),
        (label_studio((LINES, (8, 12, "GPE", "Rome"))), "newlines", "characters"),
        (label_studio(("in Rome", (3, 6, "GPE", "Rome"))), "inclusive", "characters"),
        (
            json.dumps({"text": "在北京", "label": {"LOC": {"北京": [[1, 3]]}}}),
            "characters",
            "inclusive",
        ),
    ],
)
def test_places_that_a_tool_does_not_write(content, offsets, others, tmp_path):
    path = tmp_path / "all.json"
    path.write_text(content)
    for errors in ("raise", "skip"):
        with pytest.raises(
            ValueError,
            match=f"pass offsets='{offsets}' or errors=\"fix\"; else pass offsets='{others}'",
        ):
            read_annotations(path, errors=errors)
    with pytest.warns(UserWarning, match="of 1 texts 1 with places that count .*, corrected"):
        read = read_annotations(path, errors="fix")
    named = read_annotations(path, offsets=offsets)
    assert (read.x, read.y) == (named.x, named.y) and not named.corrected
    ((start, end, _),) = read.y[0]
    assert read.x[0][start:end] in ("India", "Rome", "北京")
    (names,) = read.corrected.values()
    assert len(names) == 1


@pytest.mark.parametrize(
    "rows",
    [
        # Labels of parts of words, as in German, among spans that fit.
        [("Die Bundesregierung tagt in Bonn.", (4, 9, "ORG"), (28, 32, "LOC"))] * 3,
        # Particles beside names: with one more character, the spans would be words.
        [("서울에 갔다", (0, 2, "LOC")), ("영희는 서울의 딸", (0, 2, "PER"), (4, 6, "LOC"))],
        [("カナは", (0, 2, "PER")), ("в Риме", (2, 6, "LOC"))],
    ],
)
def test_spans_within_words_are_no_other_count(rows, tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(doccano(*rows))
    assert read_annotations(path).y == [spans for _, *spans in rows]


def test_windows_files_of_brat(tmp_path):
    """nlplab/brat, issue 853: brat counts one character for the end of a line."""
    text = "John loves Mary.\r\nHe married her.\r\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    spans = {
        "brat": [(0, 4), (11, 15), (17, 19), (28, 31)],
        "other": [(0, 4), (11, 15), (18, 20), (29, 32)],
    }
    for places in spans.values():
        names = zip(places, ["John", "Mary", "He", "her"], strict=True)
        content = "".join(
            f"T{n}\tPER {s} {e}\t{name}\r\n" for n, ((s, e), name) in enumerate(names, 1)
        )
        (tmp_path / "a.ann").write_bytes(content.encode())
        read = read_annotations(tmp_path)
        assert read.x == [text]
        assert [text[start:end] for start, end, _ in read.y[0]] == ["John", "Mary", "He", "her"]


def test_spans_of_several_lines_in_windows_files_of_brat(tmp_path):
    """nlplab/brat, issue 1169: a piece for each line, and a line end is two characters."""
    text = "Date: Thu\r\nFrom: Allen\r\nTo: Ada and Bob"
    (tmp_path / "a.txt").write_bytes(text.encode())
    lines = ["T1\tX 0 10;11 23\tDate: Thu\r From: Allen\r", "T2\tY 28 31;36 39\tAda Bob"]
    (tmp_path / "a.ann").write_bytes("\n".join(lines).encode())
    with pytest.warns(
        UserWarning, match="1 with a span with spaces at its border, trimmed; 1 with"
    ):
        read = read_annotations(tmp_path, errors="fix")
    assert [text[s:e] for s, e, _ in read.y[0]] == ["Date: Thu\r\nFrom: Allen"]
    assert read.left_out == {"a span of several pieces": ["a"]}
