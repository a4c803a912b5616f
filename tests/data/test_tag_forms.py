import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite.heads.tags.scores import score_entities
from keras_bert_suite.heads.tags.tag_forms import find_strangers, split_tags
from keras_bert_suite.heads.tags.tag_schemes import (
    convert_tags,
    detect_scheme,
    entity_tables,
    find_entities,
    infer_scheme,
    parse_tags,
)

KINDS = ("PER", "LOC")
SIGNS = "/:.|\u2013"
SUFFIXED = ["O", *(f"{kind}-{letter}" for letter in "BIES" for kind in KINDS)]


@given(st.lists(st.lists(st.sampled_from(SUFFIXED), max_size=8), min_size=1, max_size=4))
def test_suffixes_are_read_as_seqeval_reads_them(rows):
    get_entities = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    parsed = parse_tags(SUFFIXED)
    for tags in rows:
        wanted = [(kind, first, last + 1) for kind, first, last in get_entities(tags, suffix=True)]
        assert find_entities(tags, parsed) == wanted


def write_prefix(letter, kind):
    return f"{letter}-{kind}"


@pytest.mark.parametrize(
    ("write", "outside"),
    [
        (lambda letter, kind: f"{kind}-{letter}", "O"),
        (lambda letter, kind: f"{letter}_{kind}", "O"),
        (lambda letter, kind: f"{kind}_{letter}", "O"),
        (lambda letter, kind: f"{letter}-{kind}".lower(), "o"),
        (lambda letter, kind: f"{letter}-{kind}".lower(), "O"),
        (lambda letter, kind: f"{letter}_{kind}".lower(), "o"),
        (lambda letter, kind: f"{kind}-{letter}".lower(), "o"),
        (lambda letter, kind: f"{letter.lower()}-{kind}", "O"),
        *((lambda letter, kind, sign=sign: f"{letter}{sign}{kind}", "O") for sign in SIGNS),
        *((lambda letter, kind, sign=sign: f"{kind}{sign}{letter}".lower(), "o") for sign in SIGNS),
    ],
)
@pytest.mark.parametrize(
    ("scheme", "letters"), [("BIO", "BI"), ("BIOES", "BIES"), ("BMES", "BMES")]
)
def test_every_form_says_what_prefixes_say(write, outside, scheme, letters):
    pairs = [(letter, kind) for kind in KINDS for letter in letters]
    names = [outside, *(write(*pair) for pair in pairs)]
    plain = dict(zip(names, ["O", *(write_prefix(*pair) for pair in pairs)], strict=True))
    assert infer_scheme(names) == scheme
    for got, wanted in zip(entity_tables(names), entity_tables([*plain.values()]), strict=True):
        assert str(got).upper() == str(wanted).upper()
    rows = [names, names[::-1], names[1:3]]
    converted = convert_tags(rows, scheme)
    wanted = convert_tags([[plain[tag] for tag in row] for row in rows], scheme)
    assert [[tag.upper() for tag in row] for row in converted] == wanted
    bio = convert_tags([[write("B", "PER"), write("I", "PER"), outside]], scheme)
    assert bio[0][2] == "O" and detect_scheme([[write("B", "PER"), write("I", "PER")]]) == "BIO"
    assert not find_strangers(names)
    scores = score_entities([names[1:3]], [names[1:3]], names)
    assert scores["f1"] == 1.0


@pytest.mark.parametrize(
    ("names", "split"),
    [
        # The labels of special tokens are never entities.
        (["O", "B-X", "[CLS]", "[SEP]"], {"[CLS]": ("O", None), "B-X": ("B", "X")}),
        (["NN", "[PAD]"], {"NN": (None, "NN"), "[PAD]": ("O", None)}),
        # X is a piece of a word among entities, and a part of speech among others.
        (["O", "B-PER", "X"], {"X": ("O", None)}),
        (["O", "B", "I", "X"], {"X": ("O", None), "I": ("I", "_")}),
        (["NOUN", "X"], {"X": (None, "X")}),
        # ICTCLAS's tags of parts of speech are letters.
        (["n", "b", "m", "e", "s", "o"], {"b": (None, "b"), "o": (None, "o")}),
        (["B-PER", "o"], {"o": (None, "o")}),
        (["NN", "VV", "M"], {"M": (None, "M")}),  # A tag of the Chinese Treebank.
        # Types that begin or end as tags do.
        (["O", "B.A", "phone"], {"B.A": (None, "B.A")}),
        (["O", "E-mail", "phone"], {"E-mail": (None, "E-mail"), "phone": (None, "phone")}),
        (["O", "VITAMIN-E"], {"VITAMIN-E": (None, "VITAMIN-E")}),
        (["O", "VITAMIN-E", "GENE"], {"VITAMIN-E": (None, "VITAMIN-E")}),
        (["O", "B-VITAMIN-E", "I-VITAMIN-E"], {"B-VITAMIN-E": ("B", "VITAMIN-E")}),
        (["O", "B-a_b", "I-a_b"], {"B-a_b": ("B", "a_b")}),
    ],
)
def test_tags_that_may_be_read_in_several_ways(names, split):
    read = split_tags(names)
    assert {name: read[name] for name in split} == split


@pytest.mark.parametrize(
    ("names", "strangers"),
    [
        (["O", "B-PER", "I_PER"], {"I_PER": "the type 'I_PER'"}),
        (["O", "B-PER", "o"], {"o": "the type 'o'"}),
        (["O", "PER-B", "I_X"], {"PER-B": "the type 'PER-B'", "I_X": "the type 'I_X'"}),
        (["O", "PER-B"], {"PER-B": "the type 'PER-B'"}),
        (["O", "B-PER", "X"], {"X": "outside of entities"}),
        (["O", "B-PER", "[CLS]"], {}),
        (["O", "I-PER", "I-O"], {"I-O": "the type 'O'"}),  # CoNLL-2003 has 11 of these.
        (["O", "B-PER", "U-", "B"], {"U-": "the type '_'", "B": "the type '_'"}),
        (["O", "B", "I"], {}),
        (["O", "B-P", "B-L", "B-O"], {}),
        (["NOUN", "VERB"], {}),
        (["NOUN", "VERB-S"], {}),
        (["NN", "VV", "M"], {}),
        (["O"], {}),
    ],
)
def test_tags_in_another_form_than_most(names, strangers):
    assert find_strangers(names) == strangers
