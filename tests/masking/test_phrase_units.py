import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import train

from keras_bert_suite import AlbertTokenizer, BytePairTokenizer, WordPieceTokenizer
from keras_bert_suite.masking.maskable_units import (
    LexiconPhrases,
    MaskVocabulary,
    TaggedPhrases,
    UnitFinder,
)

LETTERS = "abcd"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS)]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def make_rows(*rows):
    """(begins, token_ids, eligible) of rows such as "- a b##c -"; "-" is a special token."""
    ids, begins = [], []
    for row in rows:
        pieces = row.replace("##", " ##").split()
        ids.append([3 if piece == "-" else VOCABULARY.index(piece) for piece in pieces])
        begins.append([not piece.startswith("##") for piece in pieces])
    token_ids = np.array(ids, "int32")
    return np.array(begins), token_ids, token_ids > 4


def mark(begins):
    """Rows such as "1101", where units begin."""
    return ["".join(map(str, row)) for row in begins.astype(int).tolist()]


def test_phrases_of_a_lexicon_literally(tokenizer):
    rows = make_rows("- a b c d - a b -", "- c a b##c a b - -", "a b - c d a b b -")
    lexicon = LexiconPhrases(tokenizer, ["a b", "a b c", "c d", "b b"])
    # The longest phrase counts, "a bc" is none, and no phrase goes through a special token.
    assert mark(lexicon.join(*rows)) == ["110011101", "111101011", "101101011"]


def test_phrases_of_a_lexicon_within_chinese():
    tokenizer = AlbertTokenizer(train(["电影 很 好 看,", "看 电影", "好 电影,很 好"] * 9, 30))
    token_ids = np.array([tokenizer.tokenize("很好看电影,好看")])
    begins = ~tokenizer.find_continuations()[token_ids]
    tokens = [tokenizer.id_to_token(id) for id in token_ids[0]]
    units = LexiconPhrases(tokenizer, ["好看"]).join(begins, token_ids, np.ones_like(begins))
    units = "".join(f"|{t}" if first else t for t, first in zip(tokens, units[0], strict=True))
    assert units == "|▁|很|好看|电|影|,|好看"


def test_phrases_of_a_lexicon_after_punctuation():
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    token_ids = np.array([tokenizer.tokenize("(good film)")])
    vocabulary = MaskVocabulary(tokenizer, ordinary_only=True)
    finder = UnitFinder(vocabulary, phrases=LexiconPhrases(tokenizer, ["good film"]))
    _, units = finder.find(token_ids, np.ones_like(token_ids, bool))
    units = np.split(token_ids[0], np.flatnonzero(units[0])[1:])
    assert [tokenizer.detokenize(ids.tolist()) for ids in units] == ["(", "good film", ")"]


def join_in_a_loop(lexicon, words):
    """Whether each word of a row begins a unit. A word is a str, "-" is a special token."""
    begins, place = [], 0
    while place < len(words):
        ends = range(len(words), place, -1)
        found = (end - place for end in ends if " ".join(words[place:end]) in lexicon)
        size = next(found, 1)
        begins += [True] + [False] * (size - 1)
        place += size
    return begins


@settings(max_examples=200, deadline=None)
@given(
    lexicon=st.lists(
        st.lists(st.sampled_from(LETTERS), min_size=1, max_size=4).map(" ".join), min_size=1
    ),
    words=st.lists(st.lists(st.sampled_from("abcd-"), min_size=9, max_size=9), min_size=1),
)
def test_phrases_of_a_lexicon_equal_a_loop(lexicon, words, tokenizer):
    rows = make_rows(*map(" ".join, words))
    joined = LexiconPhrases(tokenizer, lexicon).join(*rows)
    assert joined.tolist() == [join_in_a_loop(set(lexicon), row) for row in words]


def test_phrases_of_a_tagger(tokenizer):
    seen = []

    def tag(words):
        seen.append(words)
        return [(0, 2), (2, 3)] if len(words) > 2 else []

    rows = make_rows("- a b##c d - a b", "- a - - b c d -")
    assert mark(TaggedPhrases(tokenizer, tag).join(*rows)) == ["11001111", "11111011"]
    assert seen == [["a", "bc", "d"], ["a", "b"], ["a"], ["b", "c", "d"]]


@pytest.mark.parametrize(
    "spans", [[(0, 3)], [(1, 1)], [(1, 2), (0, 1)], [(0, 2), (1, 2)], [(-1, 1)]]
)
def test_spans_that_are_none(tokenizer, spans):
    with pytest.raises(ValueError, match=r"must find ranges .* of the 2 words \['a', 'b'\]"):
        TaggedPhrases(tokenizer, lambda words: spans).join(*make_rows("- a b -"))
