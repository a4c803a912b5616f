"""Texts cut into words, and their spans into tags."""

import json
import random

import pytest
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, IOBES, Entities

from keras_bert_suite import WordPieceTokenizer, read_annotations
from keras_bert_suite.heads.tags.annotations.words import _CHINESE, cut_words
from keras_bert_suite.tokenizers.unicode_rules import CJK, parse_ranges

ALPHABET = [
    *"abZ09 .,-_'&()/\t\n",
    *"é京北，。「」«»½€©",
    "\u3000",
    "\u0e01",
    "か",
    "\U0001f600",
    "\U00020000",
]


def test_the_words_are_those_of_the_tokenizer():
    """Where a token begins a word, for a vocabulary that has all characters."""
    pieces = sorted({c for c in ALPHABET if c.strip()})
    tokenizer = WordPieceTokenizer(
        [
            "[PAD]",
            "[UNK]",
            "[CLS]",
            "[SEP]",
            "[MASK]",
            *pieces,
            *(f"##{piece}" for piece in pieces),
        ],
        lowercase=False,
    )
    rng = random.Random(0)
    for _ in range(300):
        text = "".join(rng.choices(ALPHABET, k=rng.randrange(1, 15)))
        _, offsets, starts = tokenizer.tokenize_with_offsets(text)
        wanted = [start for (start, _), begins in zip(offsets, starts, strict=True) if begins]
        assert [start for start, _ in cut_words(text)] == wanted
    assert parse_ranges(CJK) == list(_CHINESE)


def write(path, text, *spans):
    path.write_text(json.dumps({"text": text, "label": spans}), "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "spans", "words", "tags"),
    [
        ("Ada in New York.", [(0, 3, "PER"), (7, 15, "LOC")],
         "Ada in New York .", "B-PER O B-LOC I-LOC O"),
        ("AT&T in 北京大学", [(0, 4, "ORG"), (8, 12, "ORG")],
         "AT & T in 北 京 大 学", "B-ORG I-ORG I-ORG O B-ORG I-ORG I-ORG I-ORG"),
        ("3.5%", [(0, 3, "NUM")], "3 . 5 %", "B-NUM I-NUM I-NUM O"),
        ("Ada,Bob", [(0, 3, "PER"), (4, 7, "PER")], "Ada , Bob", "B-PER O B-PER"),
        ("甲乙", [(0, 1, "PER"), (1, 2, "PER")], "甲 乙", "B-PER B-PER"),
        ("no one", [], "no one", "O O"),
        ("e\u0301te\u0301 a", [(0, 5, "X")], "e\u0301te\u0301 a", "B-X O"),
    ],
)  # fmt: skip
def test_tags_of_words(text, spans, words, tags, tmp_path):
    read = read_annotations(write(tmp_path / "a.jsonl", text, *spans), scheme="BIO")
    assert (read.x, read.y) == ([words.split()], [tags.split()])
    kinds = sorted({kind for _, _, kind in spans})
    assert read.label_names == ["O", *(f"{letter}-{kind}" for kind in kinds for letter in "BI")]
    by_words = read_annotations(write(tmp_path / "a.jsonl", text, *spans), scheme="spans")
    assert by_words.x == read.x and by_words.label_names == kinds
    # seqeval finds the spans again, in each scheme.
    wanted = [(kind, first, end - 1) for first, end, kind in by_words.y[0]]
    assert get_entities(read.y[0]) == wanted
    for scheme, rules in (("BIO", IOB2), ("BIOES", IOBES)):
        rows = read_annotations(tmp_path / "a.jsonl", scheme=scheme).y
        found = Entities(rows, rules).entities[0]
        assert [(e.tag, e.start, e.end - 1) for e in found] == wanted
    for (first, end, _), (start, stop, _) in zip(by_words.y[0], sorted(spans), strict=True):
        assert "".join(by_words.x[0][first:end]) == "".join(text[start:stop].split())


def test_spans_that_cut_words(tmp_path):
    text = "The firetrucks of Rome"
    path = write(
        tmp_path / "a.jsonl", text, (4, 8, "FIRE"), (18, 22, "LOC"), (0, 3, "X"), (15, 17, "X")
    )
    assert len(read_annotations(path).y[0]) == 4  # In a text they are spans.
    for scheme in ("BIO", "spans"):
        with pytest.raises(
            ValueError, match="the span 4 to 8 .* is 'fire' and cuts .* 'firetrucks'"
        ):
            read_annotations(path, scheme=scheme)
        with pytest.warns(
            UserWarning, match="1 with a span that cuts through a word, widened to who"
        ):
            fixed = read_annotations(path, scheme=scheme, errors="fix")
        with pytest.warns(UserWarning, match="1 with a span that cuts through a word, not read"):
            skipped = read_annotations(path, scheme=scheme, errors="skip")
        assert fixed.corrected == skipped.corrected == {"a span that cuts through a word": [1]}
    assert fixed.y == [[(0, 1, "X"), (1, 2, "FIRE"), (2, 3, "X"), (3, 4, "LOC")]]
    assert skipped.y == [[(0, 1, "X"), (2, 3, "X"), (3, 4, "LOC")]]


def test_tags_cannot_overlap(tmp_path):
    text = "Bank of England"
    path = write(
        tmp_path / "a.jsonl", text, (8, 15, "LOC"), (0, 15, "ORG"), (0, 4, "X"), (0, 15, "Y")
    )
    assert len(read_annotations(path, scheme="spans").y[0]) == 4
    with pytest.raises(ValueError, match="'England' and overlaps another.* 1 of 1 texts"):
        read_annotations(
            write(tmp_path / "b.jsonl", text, (8, 15, "LOC"), (0, 15, "ORG")), scheme="BIO"
        )
    for errors in ("fix", "skip"):
        with pytest.warns(
            UserWarning, match="1 with a span that overlaps another, the shorter one"
        ):
            read = read_annotations(path, scheme="BIO", errors=errors)
        assert read.y == [["B-ORG", "I-ORG", "I-ORG"]]
        assert read.corrected == {"a span that overlaps another": [1]}
