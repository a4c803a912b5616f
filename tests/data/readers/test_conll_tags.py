"""Tags of files in CoNLL's form: what is outside of entities, brackets, schemes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite import read_conll
from keras_bert_suite.heads.tags.tag_schemes import write_tags


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("tags") / "train.txt"


@pytest.mark.parametrize("outside", ["0", "other", "OTHER", "Other", "_", "-", "*", "none", ""])
@pytest.mark.parametrize("tag", ["B-LOC", "LOC"])
def test_another_tag_outside_of_entities_is_named(path, outside, tag):
    path.write_text(f"Rio\t{tag}\nis\t{outside}\nbig\t{outside}\n")
    with pytest.raises(ValueError, match="outside"):
        read_conll(path)
    found = read_conll(path, outside=outside)
    assert (found.y, found.label_names) == ([[tag, "O", "O"]], ["O", tag])
    spans = read_conll(path, outside=outside, scheme="spans")
    assert spans.y == [[(0, 1, "LOC")]]


@pytest.mark.parametrize("tag", ["0", "_", "other"])
def test_a_tag_that_is_none_beside_o_is_named(path, tag):
    path.write_text(f"Rio B-LOC\nis O\nbig {tag}\n")
    with pytest.raises(ValueError, match=f"line 3: {tag!r} is the tag of 'big'"):
        read_conll(path)


def write_brackets(entities, length):
    tags = ["*"] * length
    for kind, first, end in entities:
        tags[end - 1] = "*)"
        tags[first] = f"({kind}*" if end - first > 1 else f"({kind})"
    return tags


def find_brackets(tags):
    """Another reading of brackets: the line of tags as one text."""
    places, text = [], ""
    for tag in tags:
        places.append(len(text))
        text += tag
    return [
        (found[1], places.index(found.start()), sum(place < found.end() for place in places))
        for found in re.finditer(r"\((\w+)[*]*\)", text)
    ]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=4))
def test_brackets_are_read_as_entities(path, steps):
    entities, last = [], 0
    for number, (gap, length) in enumerate(steps):
        entities.append((("PERSON", "GPE")[number % 2], last + gap, last + gap + length))
        last += gap + length
    tags = write_brackets(entities, last + 1)
    assert find_brackets(tags) == entities
    path.write_text("".join(f"w{place} {tag}\n" for place, tag in enumerate(tags)))
    assert read_conll(path).y == [write_tags(entities, last + 1, "BIO")]


ONTONOTES = """\
#begin document (bc/cctv/00/cctv_0000); part 000
bc/cctv/00/cctv_0000   0   0   In     IN   (TOP(S(PP*   -   -   -   Speaker#1   *        *      (12
bc/cctv/00/cctv_0000   0   1   Hong   NNP      (NP*     -   -   -   Speaker#1   (GPE*    *      -
bc/cctv/00/cctv_0000   0   2   Kong   NNP      *))))    -   -   -   Speaker#1   *)       (V*)   12)

bc/cctv/00/cctv_0000   0   0   Summer NN   (TOP(S*))    -   -   -   Speaker#1   (DATE)   -

#end document
"""


def test_conll_2012(path):
    path.write_text(ONTONOTES)
    found = read_conll(path, word_column=4, tag_column=11)
    assert found.x == [["In", "Hong", "Kong"], ["Summer"]]
    assert found.y == [["O", "B-GPE", "I-GPE"], ["B-DATE"]]
    with pytest.raises(ValueError, match="line 6: got 12 fields.* columns of their own, as in Co"):
        read_conll(path)
    with pytest.raises(ValueError, match="the column 1 has 'bc/cctv/00/cctv_0000' in many lines"):
        read_conll(path, tag_column=11)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("A (ORG*\nB (GPE)\nc *)\n", r"line 2: got '\(GPE\)' within an open bracket"),
        ("A (ORG*\nB *\n\nC (GPE)\n", "line 2: got the end of a sentence within .* 'ORG'"),
        ("A (ORG*\nB *)\nC *)\n", r"line 3: got '\*\)' without an open bracket"),
        ("A (ORG*\nB *)\nC O\n", "line 3: got 'O' without an open bracket"),
    ],
)
def test_brackets_that_do_not_close_are_named(path, content, error):
    path.write_text(content)
    with pytest.raises(ValueError, match=error):
        read_conll(path)


BMES = "高 B-NAME\n勇 E-NAME\n了 O\n\n"
BIO = "北 B-LOC\n京 I-LOC\n市 I-LOC\n人 O\n\n"


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (
            BMES * 2 + BIO,
            "1 of 3 sentences are tagged in BIO, and most in BIOES. .* line 9. .*OES'",
        ),
        (BIO * 2 + BMES, "1 of 3 sentences are tagged in BIOES, and most in BIO. .* line 11"),
        (BIO * 2 + BMES + "大 B-X\n学 M-X\n士 E-X\n", "2 of 4 .* in BMES, and most in BIO"),
    ],
)
def test_a_file_of_two_schemes_gives_a_warning(path, content, warning):
    path.write_text(content, encoding="utf-8")
    with pytest.warns(UserWarning, match=warning):
        found = read_conll(path, scheme=None)
    for scheme in ("BIO", "BMES"):
        converted = read_conll(path, scheme=scheme)
        assert {tag[0] for row in converted.y for tag in row} <= {*scheme, "O"}
    # Another reader finds the same entities.
    get_entities = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    spans = read_conll(path, scheme="spans").y
    for row, row_spans in zip(found.y, spans, strict=True):
        tags = [tag.replace("M-", "I-") for tag in row]
        assert row_spans == [(start, end + 1, kind) for kind, start, end in get_entities(tags)]
