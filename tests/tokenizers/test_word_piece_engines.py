"""The ids and the offsets, of both engines, held against the original rules."""

import itertools
import unicodedata

import google_tokenization
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_checks import check_engines, random_texts

from keras_bert_suite import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# fmt: off
PIECES = [
    "un", "##able", "the", "cafe", "café", "##s", "!", "'", "[", "]", "sep", "一", "丁",
    "ο", "##δ", "##ο", "##σ", "##ς", "a", "A", "##b", "##a", "##é", "##e", "ᄀ", "##ᅡ", "##ᆨ", "가",
]
# fmt: on
VOCABULARY = SPECIAL + PIECES
IDS = {piece: index for index, piece in enumerate(VOCABULARY)}

#: Characters at the borders of the rules.
BORDERLINE = (
    list("ΣΣσςοδΟΔaAbBéÉİıßẞﬁ½1 ")
    + list("'’.·ʰˑ!#[]“”。，≠\u037e\u0387\u1fef")  # Punctuation and what sigma looks past.
    + list("\u0301\u0308\u0345\u0488\u302e")  # Combining marks.
    + list("\x00\x01\x0b\x1c\x7f\x85\u00ad\u200b\u200d\ufeff\ufffd")  # Deleted.
    + list("\t\n\r\xa0\u1680\u2028\u2029\u3000")  # Spaces.
    + list("一龥\u9fff\uf900\U0002b81f\U0002b820\U0002ceaf\U0002ceb0\U0002f800가각ᄀカが")
    + list("\ue000\uf8ff\ufdd0\U0010ffff\u1b4e\U00011f43\U0001fae8\U0001f600")  # Letters, to BERT.
)


@pytest.fixture(scope="module")
def uncased():
    return WordPieceTokenizer(VOCABULARY)


@pytest.fixture(scope="module")
def cased():
    return WordPieceTokenizer(VOCABULARY, lowercase=False)


def ids_of(*pieces):
    return [IDS[piece] for piece in pieces]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \n\t ", []),
        ("Unable !", ["un", "##able", "!"]),
        ("the,the", ["the", "[UNK]", "the"]),
        ("CAFÉS", ["cafe", "##s"]),
        ("cafe\u0301s", ["cafe", "##s"]),
        ("[SEP]", ["[", "sep", "]"]),
        ("the一丁the", ["the", "一", "丁", "the"]),
        ("un\x00ab\u200ble", ["un", "##able"]),
        ("un\u2028able", ["un", "[UNK]"]),
        ("ΟΔΟΣ", ["ο", "##δ", "##ο", "##ς"]),
        ("οΣΣο", ["ο", "##σ", "##σ", "##ο"]),
        ("ΟΔΟΣ'", ["ο", "##δ", "##ο", "##ς", "'"]),
        ("ΟΔΟΣ'a", ["ο", "##δ", "##ο", "##σ", "'", "a"]),
        ("각", ["ᄀ", "##ᅡ", "##ᆨ"]),
        ("a" + "b" * 199, ["a"] + ["##b"] * 199),
        ("a" + "b" * 200, ["[UNK]"]),
        ("ο" + "δ" * 199, ["ο"] + ["##δ"] * 199),
        ("ο" + "δ" * 200 + " the", ["[UNK]", "the"]),
        ("A" + "\u0301" * 300 + "b", ["a", "##b"]),
        ("a \ue000 \U0010ffff \U0001f600", ["a", "[UNK]", "[UNK]", "[UNK]"]),
    ],
)
def test_ids_of_lower_cased_text(uncased, run_engine, text, pieces):
    assert run_engine(uncased, [text]) == [ids_of(*pieces)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the café", ["the", "café"]),
        ("cafe\u0301", ["[UNK]"]),
        ("Ab aÉ aé", ["A", "##b", "[UNK]", "a", "##é"]),
        ("가", ["가"]),
        ("ο" + "δ" * 199, ["ο"] + ["##δ"] * 199),
        ("ο" + "δ" * 200, ["[UNK]"]),
    ],
)
def test_ids_of_cased_text(cased, run_engine, text, pieces):
    assert run_engine(cased, [text]) == [ids_of(*pieces)]


def test_lower_case_and_accents_are_separate_choices(run_engine):
    kept = WordPieceTokenizer(VOCABULARY, lowercase=True, strip_accents=False)
    assert run_engine(kept, ["CAFÉ 가 aÉ"]) == [ids_of("café", "가", "a", "##é")]
    stripped = WordPieceTokenizer(VOCABULARY, lowercase=False, strip_accents=True)
    assert run_engine(stripped, ["café Aé"]) == [ids_of("cafe", "A", "##e")]


def test_characters_of_later_unicode_versions_are_letters(run_engine):
    # Punctuation since Unicode 16, 15 and a noncharacter; two are in the vocabulary.
    vocabulary = [*SPECIAL, "a", "##\u1b4e", "\U00011f43", "##a", "\ue000", "##\ue001"]
    tokenizer = WordPieceTokenizer(vocabulary)
    texts = ["a\u1b4ea", "\U00011f43a", "a\u1b4f", "\U00011f43", "\U00011f44", "\ue000\ue001\ue002"]
    expected = [google_tokenization.tokenize(text, vocabulary, True) for text in texts]
    assert expected[:5] == [[5, 6, 8], [7, 8], [1], [7], [1]]
    assert run_engine(tokenizer, texts) == expected
    assert run_engine(tokenizer, ["\ue000\ue001", "\ue001"]) == [[9, 10], [1]]


def test_a_piece_with_a_space_in_it_matches_nothing(run_engine):
    tokenizer = WordPieceTokenizer([*SPECIAL, "a", "b", "a b", "a\u3000b"])
    assert run_engine(tokenizer, ["a b", "a\u3000b"]) == [[5, 6], [5, 6]]


def test_visible_marks_are_put_in_canonical_order():
    # Not in the graph: see FastGraphTokenizer.
    tokenizer = WordPieceTokenizer([*SPECIAL, "a", "##\U0001d165", "##\U0001d16d"])
    assert tokenizer.tokenize("a\U0001d16d\U0001d165") == [5, 6, 7]
    ids, offsets, _ = tokenizer.tokenize_with_offsets("a\U0001d16d\U0001d165")
    assert (ids, offsets) == ([5, 6, 7], [(0, 1), (1, 3), (1, 3)])


texts_strategy = st.lists(
    st.lists(
        st.one_of(
            st.sampled_from(BORDERLINE),
            st.sampled_from([piece.removeprefix("##") for piece in PIECES]),
            st.characters(),
            st.sampled_from(["a" * 199, "é" * 101, "ก" * 67, "一" * 70, "ab" * 101, "δ" * 200]),
        )
    ).map("".join),
    min_size=8,
    max_size=8,
)


@settings(max_examples=12, derandomize=True)
@given(texts=texts_strategy)
@pytest.mark.parametrize("lowercase", [True, False])
def test_both_engines_equal_the_original_rules(texts, lowercase, uncased, cased):
    check_rules(uncased if lowercase else cased, texts)


@pytest.mark.long("texts")
@pytest.mark.parametrize("lowercase", [True, False])
def test_a_hundred_thousand_random_strings(lowercase, uncased, cased):
    units = [*BORDERLINE, *map(chr, range(0x20, 0x250)), "a" * 199, "é" * 101, "δ" * 200]
    for batch in random_texts(100_000, [*units, *(p.removeprefix("##") for p in PIECES)]):
        check_rules(uncased if lowercase else cased, batch)


def check_rules(tokenizer, texts):
    """Both engines give the ids of Google's rules."""
    lowercase = tokenizer.lowercase
    eager = tokenizer.tokenize(texts)
    flat, lengths = tokenizer.tokenize_flat(texts)
    assert flat.tolist() == list(itertools.chain.from_iterable(eager))
    assert lengths.tolist() == [len(row) for row in eager]
    assert [row[0] for row in tokenizer.tokenize_with_offsets(texts)] == eager
    if unicodedata.unidata_version == "14.0.0":
        assert eager == [google_tokenization.tokenize(t, VOCABULARY, lowercase) for t in texts]
    tf = pytest.importorskip("tensorflow")
    encoded = [text.encode("utf-8", "ignore") for text in texts]
    assert tokenizer.tokenize(encoded) == eager
    assert tokenizer.tokenize(tf.constant(encoded)).to_list() == eager


@settings(max_examples=8, derandomize=True)
@given(texts=texts_strategy)
def test_offsets_of_both_engines_agree(texts, uncased):
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    check_engines(uncased, texts, uncased.tokenize(texts))


@settings(max_examples=60, derandomize=True)
@given(text=st.lists(st.one_of(st.sampled_from(BORDERLINE), st.characters())).map("".join))
def test_offsets_cover_what_a_piece_was_made_from(text, cased):
    """Without lower case and decomposition a span holds its piece and what was deleted."""
    ids, offsets, _ = cased.tokenize_with_offsets(text)
    for id, (start, end) in zip(ids, offsets, strict=True):
        token = VOCABULARY[id].removeprefix("##")
        if token != "[UNK]":
            kept = [c for c in text[start:end] if google_tokenization.clean_character(c)]
            assert "".join(kept) == token


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Unable, THE", ["Un", "able", ",", "THE"]),
        ("caf\u00e9s", ["caf\u00e9", "s"]),
        ("cafe\u0301s !", ["cafe\u0301", "s", "!"]),
        ("the一 丁", ["the", "一", "丁"]),
        ("un\u00adable", ["un\u00ad", "able"]),
        ("the.\u200b a", ["the", ".\u200b", "a"]),
        ("각", ["각", "각", "각"]),
        ("ΟΔΟΣ the", ["Ο", "Δ", "Ο", "Σ", "the"]),
        ("x" * 300 + " a", ["x" * 300, "a"]),
    ],
)
def test_spans(uncased, text, expected):
    _, offsets, _ = uncased.tokenize_with_offsets(text)
    assert [text[start:end] for start, end in offsets] == expected


def test_word_starts(uncased):
    ids, offsets, word_starts = uncased.tokenize_with_offsets("Unable cafés")
    assert ids == ids_of("un", "##able", "cafe", "##s")
    assert offsets == [(0, 2), (2, 6), (7, 11), (11, 12)]
    assert word_starts == [True, False, True, False]


def test_what_is_no_text_vanishes(uncased, run_engine):
    the = ids_of("the")
    assert uncased.tokenize("t\ud800h\x00e\ufffd") == the
    assert run_engine(uncased, [b"t\xffh\xe2\x80e\xf0\x9f\x98\xed\xa0\x80\xc3"]) == [the]


def test_more_distinct_words_than_are_remembered(monkeypatch):
    module = "keras_bert_suite.tokenizers.engines.MAX_CACHED"
    monkeypatch.setattr(module, 3)
    tokenizer = WordPieceTokenizer(VOCABULARY)
    for _ in range(2):
        assert tokenizer.tokenize("a ab aba the un !") == ids_of(
            "a", "a", "##b", "a", "##b", "##a", "the", "un", "!"
        )


def test_long_texts(uncased, run_engine):
    """Quadratic time would show as minutes."""
    texts = ["a" * 1_000_000, "a " * 300_000, "οΣ'" * 50_000, ("ο" + "δ" * 150 + " ") * 500]
    rows = run_engine(uncased, texts)
    assert rows[0] == ids_of("[UNK]")
    assert [len(row) for row in rows[1:]] == [300_000, 150_000, 75_500]
    assert set(rows[3]) == set(ids_of("ο", "##δ"))
