import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite.heads.tags.scores import score_entities
from keras_bert_suite.heads.tags.tag_schemes import (
    SCHEMES,
    allowed_neighbours,
    convert_tags,
    detect_scheme,
    find_entities,
    find_middle_labels,
    infer_scheme,
    write_tags,
)

TAGS = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC"))]
SENTENCES = st.lists(
    st.lists(st.sampled_from(TAGS), min_size=1, max_size=8), min_size=1, max_size=4
)


@st.composite
def true_and_predicted(draw):
    true = draw(SENTENCES)
    predicted = [
        draw(st.lists(st.sampled_from(TAGS), min_size=len(tags), max_size=len(tags)))
        for tags in true
    ]
    return true, predicted


# seqeval takes the mean over the classes, of which there may be none.
@pytest.mark.filterwarnings("ignore:(Mean of empty slice|invalid value):RuntimeWarning")
@given(true_and_predicted())
def test_scores_are_seqevals(sentences):
    """Tags of IOB1, IOB2 and BIOES, right ones and impossible ones, in any mixture."""
    metrics = pytest.importorskip("seqeval.metrics")
    true, predicted = sentences
    scores = score_entities(true, predicted)
    by_class = metrics.classification_report(true, predicted, output_dict=True, zero_division=0)
    wanted = by_class.pop("micro avg", None)
    for got, row in [
        *((scores["types"][kind], by_class[kind]) for kind in scores["types"]),
        *([(scores, wanted)] if wanted else []),
    ]:
        assert got["precision"] == pytest.approx(row["precision"])
        assert got["recall"] == pytest.approx(row["recall"])
        assert got["f1"] == pytest.approx(row["f1-score"])
        assert got["entities"] == row["support"]
    assert scores["f1"] == pytest.approx(metrics.f1_score(true, predicted, zero_division=0))


@pytest.mark.parametrize(("scheme", "letters"), [("IOB2", "BI"), ("IOBES", "BIES")])
def test_strict_scores_are_seqevals(scheme, letters):
    metrics, schemes = map(pytest.importorskip, ("seqeval.metrics", "seqeval.scheme"))
    rng = random.Random(0)
    names = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("PER", "LOC"))]
    true, predicted = ([rng.choices(names, k=7) for _ in range(90)] for _ in range(2))
    scores = score_entities(true, predicted, names, mode="strict")
    options = {"mode": "strict", "scheme": getattr(schemes, scheme), "output_dict": True}
    wanted = metrics.classification_report(true, predicted, **options)
    for got, row in [
        (scores, wanted["micro avg"]),
        *((scores["types"][kind], wanted[kind]) for kind in ("PER", "LOC")),
    ]:
        assert got["entities"] == row["support"]
        assert got["precision"] == pytest.approx(row["precision"])
        assert got["recall"] == pytest.approx(row["recall"])
    assert scores["entities"] < score_entities(true, predicted, names)["entities"]
    with pytest.raises(ValueError, match="'strict' needs tags of BIO, BIOES or BMES, got NOUN"):
        score_entities([["NOUN"]], [["NOUN"]], mode="strict")
    with pytest.raises(ValueError, match="mode must be 'lenient' or 'strict', got 'exact'"):
        score_entities([["O"]], [["O"]], mode="exact")


@given(SENTENCES)
def test_entities_are_seqevals(sentences):
    get_entities = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    for tags in sentences:
        wanted = [(kind, first, last + 1) for kind, first, last in get_entities(tags)]
        assert find_entities(tags) == wanted


@given(st.lists(st.sampled_from(TAGS), max_size=8), st.sampled_from(SCHEMES))
def test_every_scheme_says_the_same(tags, scheme):
    entities = find_entities(tags)
    assert find_entities(write_tags(entities, len(tags), scheme)) == entities


def test_schemes():
    bio = "B-PER I-PER O B-LOC B-LOC I-LOC I-LOC".split()
    for scheme, wanted in (
        ("IOB1", "I-PER I-PER O I-LOC B-LOC I-LOC I-LOC"),
        ("BIOES", "B-PER E-PER O S-LOC B-LOC I-LOC E-LOC"),
        ("BMES", "B-PER E-PER O S-LOC B-LOC M-LOC E-LOC"),
    ):
        assert convert_tags(bio, scheme) == wanted.split()
        assert convert_tags(wanted.split(), "BIO") == bio
        assert detect_scheme([wanted.split()]) == scheme
    assert detect_scheme([bio]) == "BIO"
    assert find_entities(["B-A", "I-A", "L-A", "U-B"]) == [("A", 0, 3), ("B", 3, 4)]
    assert find_entities(["NN", "NN", "VB"]) == [("NN", 0, 2), ("VB", 2, 3)]
    assert find_entities(["B", "I", "O"]) == [("_", 0, 2)]
    with pytest.raises(ValueError, match="got 'IOB3'"):
        convert_tags(bio, "IOB3")


@pytest.mark.parametrize("rows", [[], [[]], [["I-A", "I-A"]], [["I-A"], [], ["O", "I-B"]]])
def test_rows_of_tags(rows):
    assert convert_tags(rows, "BIO") == [convert_tags(row, "BIO") for row in rows]


def test_tags_of_other_sentences():
    with pytest.raises(ValueError, match="zip.* is longer than"):
        score_entities([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="Row 0 has 1 true tags and 2 predicted"):
        score_entities([["O"]], [["O", "O"]])


@pytest.mark.parametrize(
    ("scheme", "prefixes"), [("BIO", "BI"), ("BIOES", "BIES"), ("BMES", "BMES")]
)
def test_a_path_is_allowed_if_its_entities_are_written_so(scheme, prefixes):
    """All sentences of up to three words, against the writer of tags."""
    names = ["O", *(f"{prefix}-{kind}" for kind in "XY" for prefix in prefixes)]
    assert infer_scheme(names) == scheme
    allowed, border = allowed_neighbours(names, scheme), len(names)
    for length in range(4):
        for path in itertools.product(range(len(names)), repeat=length):
            tags = [names[label] for label in path]
            pairs = itertools.pairwise([border, *path, border])
            assert all(allowed[a][b] for a, b in pairs) == (convert_tags(tags, scheme) == tags)


def test_labels_without_a_scheme():
    for names in (["NOUN", "VERB"], ["0", "1"], ["O", "I-X"], ["O", "B-X", "M-X", "I-X"]):
        assert infer_scheme(names) is None
    assert infer_scheme(["O", "B-X"]) == "BIO"
    assert infer_scheme(["B", "M", "E", "S"]) == "BMES"
    assert infer_scheme(["O", "B-X", "I-X", "L-X", "U-X"]) == "BIOES"


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "BMES"])
def test_a_middle_label_keeps_the_entities_of_its_neighbours(scheme):
    """All sentences of two words: the entities stay as they are, one word longer in the middle."""
    entities = [[], [("X", 0, 1)], [("X", 0, 2)], [("X", 0, 1), ("X", 1, 2)], [("Y", 1, 2)]]
    letters = {"BIO": "BI", "BIOES": "BIES", "BMES": "BMES"}[scheme]
    names = ["O", *(f"{letter}-{kind}" for kind in "XY" for letter in letters)]
    middle = find_middle_labels(names)
    for wanted in entities:
        first, last = (names.index(tag) for tag in write_tags(wanted, 2, scheme))
        tags = [names[label] for label in (first, middle[first][last], last)]
        stretched = {(0, 1): (0, 1), (1, 2): (2, 3), (0, 2): (0, 3)}
        assert find_entities(tags) == [
            (kind, *stretched[start, end]) for kind, start, end in wanted
        ]


def test_middle_labels_of_other_labels():
    names = ["NOUN", "VERB"]  # There is no label outside of entities.
    assert find_middle_labels(names) == [[0, 0, 0], [1, 1, 1], [0, 1, 0]]
    assert find_middle_labels(["X", "O"]) == [[0, 1, 1], [1, 1, 1], [1, 1, 1]]
    assert find_middle_labels(["o", "b-x", "i-x"])[1] == [0, 0, 2, 0]
