"""Texts made to be slow, wrong or different between the engines.

Those of a megabyte are `long`. Time is not asserted: what is quadratic takes a minute there, and
not a second.
"""

import itertools

import google_tokenization
import numpy as np
import pytest
from tokenizer_checks import check_engines

from keras_bert_suite import SegmentPacker, WordPieceTokenizer

SIZE = 1_000_000
# fmt: off
VOCABULARY = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "e", "##e", "cafe", "##s", "!", "'",
    "一", "丁", "ᄀ", "##ᅡ", "##ᆨ", "👨", "##👩", "ο", "##σ", "##ς",
]
# fmt: on
SPACES = "\t\n\r \xa0\u1680\u2000\u2028\u2029\u202f\u205f\u3000"
FAMILY = "👨\u200d👩\u200d👧\u200d👦"

#: Units that are words of their own, however often they are repeated, and their pieces.
REPEATED = {
    "english": ("The cafes, the CAFE! ", "the cafe ##s [UNK] the cafe !"),
    "chinese": ("一丁三", "一 丁 [UNK]"),
    "an accent on every letter": ("ĆÁḞÉŠ ", "cafe ##s"),
    "accents after every letter": ("c\u0301a\u0301f\u0307e\u0301\u0323 ", "cafe"),
    "syllables that decompose": ("각 ", "ᄀ ##ᅡ ##ᆨ"),
    "words of one character": ("É ", "e"),
    "NUL": ("t\0h\0\0e ", "the"),
    "lone surrogates": ("t\ud800he\udfff\udfff ", "the"),
    "bytes that are not UTF-8": (b"t\xffh\xe2\x80e\xf8 \xc3 ", "the"),
    "overlong bytes": (b"\xc0\x80the\xed\xa0\x80 \xf0\x82\x82\xac", "the"),
    "directions and no width": ("\u202et\u2066h\u200be\u2069\u202c\ufeff ", "the"),
    "no width between words": ("th\u200be the\u200b\u200d,", "the the [UNK]"),
    "joined emoji": (f"{FAMILY} 👨\u200d👩 ", "[UNK] 👨 ##👩"),
    "words of 200 and 201": ("É" * 200 + " " + "é" * 201 + " ", "e" + " ##e" * 199 + " [UNK]"),
    "marks on every word": ("a" + "\u0301\u0327\u0345" * 30 + " ", "a"),
    "sigmas across apostrophes": ("ΟΣ'ΟΣ ", "ο ##σ ' ο ##ς"),
    "spaces": (SPACES, ""),
    "nothing but what vanishes": ("\0\x7f\xad\u200b\u202e\ufeff\ufffd", ""),
}

#: A beginning and what goes on after it; the pieces of all of it, however long.
FLOODS = {
    "one accented word": ("", "é", "[UNK]"),
    "one accent": ("a", "\u0301", "a"),
    "accents out of order": ("a", "\u0301\u0327", "a"),
    "visible marks out of order": ("a", "\u302f\u302e", "[UNK]"),
    "accents on nothing": (" ", "\u0301\u0308", ""),
    "directions": ("the", "\u202e\u2066", "the"),
    "sigmas": ("ο", "Σ", "[UNK]"),
    "a sigma and accents": ("ΟΣ", "\u0301", "ο ##ς"),
    "a sigma before letters that change nothing": ("Σ", "ʰ", "[UNK]"),
    "emoji without end": ("the ", FAMILY + "\u200d", "the [UNK]"),
    "NUL": ("the", "\0", "the"),
    "continuation bytes": ("the", b"\x80", "the"),
    "starts of characters": ("the", b"\xf0\x9f", "the"),
}


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def ids(pieces):
    return [VOCABULARY.index(piece) for piece in pieces.split()]


def encode(text):
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def make_texts(size):
    """All texts of about `size` bytes, as bytes, and the ids of each."""
    texts, rows = [], []
    for unit, pieces in REPEATED.values():
        times = size // len(encode(unit))
        texts.append(encode(unit) * times)
        rows.append(ids(pieces) * times)
    for beginning, flood, pieces in FLOODS.values():
        texts.append(encode(beginning) + encode(flood) * (size // len(encode(flood))))
        rows.append(ids(pieces))
    return texts, rows


@pytest.mark.long("texts")
@pytest.mark.parametrize(("unit", "pieces"), REPEATED.values(), ids=REPEATED)
def test_long_documents(tokenizer, run_engine, unit, pieces):
    times = SIZE // len(encode(unit))
    if len(pieces) > 200:
        times //= 10  # A long word of many pieces takes the eager engine half a millisecond.
    assert run_engine(tokenizer, [encode(unit) * times]) == [ids(pieces) * times]


@pytest.mark.long("texts")
@pytest.mark.parametrize(("beginning", "flood", "pieces"), FLOODS.values(), ids=FLOODS)
def test_floods(tokenizer, run_engine, beginning, flood, pieces):
    text = encode(beginning) + encode(flood) * (SIZE // len(encode(flood)))
    assert run_engine(tokenizer, [text]) == [ids(pieces)]


def test_rows_do_not_disturb_each_other(tokenizer, run_engine):
    texts, rows = make_texts(2_000)
    between = itertools.chain.from_iterable((text, "The café", "") for text in texts)
    expected = itertools.chain.from_iterable((row, ids("the cafe"), []) for row in rows)
    assert run_engine(tokenizer, list(between)) == list(expected)


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_original_rules_say_the_same(run_engine, lowercase):
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=lowercase)
    texts, _ = make_texts(5_000)
    decoded = [text.decode("utf-8", "ignore") for text in texts]
    expected = [google_tokenization.tokenize(text, VOCABULARY, lowercase) for text in decoded]
    assert run_engine(tokenizer, texts) == expected


def test_lone_surrogates_in_python_strings(tokenizer):
    unit, pieces = REPEATED["lone surrogates"]
    assert tokenizer.tokenize(unit * 50_000) == ids(pieces) * 50_000


def test_offsets_of_both_engines(tokenizer):
    texts, rows = make_texts(5_000)
    check_engines(tokenizer, [text.decode("utf-8", "ignore") for text in texts], rows)


def test_a_packer_of_long_documents(tokenizer):
    packer = SegmentPacker(tokenizer)
    texts, rows = make_texts(10_000)
    packed = packer(texts)
    for row, expected in zip(packed["token_ids"], rows, strict=True):
        expected = [tokenizer.start_token_id, *expected[:510], tokenizer.end_token_id]
        assert row.tolist() == expected + [tokenizer.pad_token_id] * (512 - len(expected))
    windows = packer.pack_windows(texts)
    last = [windows["token_indices"][windows["row_ids"] == row].max() for row in range(len(rows))]
    assert last == [len(row) - 1 for row in rows]
    tf = pytest.importorskip("tensorflow_text") and pytest.importorskip("tensorflow")
    for name, graph in packer.pack_windows(tf.constant(texts)).items():
        np.testing.assert_array_equal(graph, windows[name])
