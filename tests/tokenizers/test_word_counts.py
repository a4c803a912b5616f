"""Counting words, and how a vocabulary covers them."""

import collections

import google_tokenization
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite.tokenizers.word_piece.word_counts import (
    Coverage,
    count_characters,
    count_words,
    measure_coverage,
)

LETTERS = "aAbÉéİΣσς1 '.!#一。\u0301\u200b\x00\t\u3000\n\U0002b820가😀"


@given(st.lists(st.text(st.sampled_from(LETTERS), max_size=30), max_size=4), st.booleans())
def test_words_are_those_of_the_original_code(texts, lowercase):
    expected = collections.Counter()
    for text in texts:
        expected.update(google_tokenization.split_words(text, lowercase))
    assert count_words(texts, lowercase) == expected


def test_accents_bytes_and_long_words():
    texts = ["Où? OU", "où".encode() + b"\xff", "é" * 200, "é" * 201]
    assert count_words(texts) == {"ou": 3, "?": 1, "e" * 200: 1}
    counts = count_words(iter(texts[:2]), lowercase=True, strip_accents=False)
    assert counts == {"où": 2, "?": 1, "ou": 1}


def test_characters_by_frequency():
    counts = count_characters({"bab": 2, "ca": 2, "d": 1})
    assert list(counts.items()) == [("a", 4), ("b", 4), ("c", 2), ("d", 1)]


def test_coverage_by_hand():
    # 3 x one piece, 1 x three pieces, 1 x unknown
    counts = {"low": 3, "lowing": 1, "x": 1}
    vocabulary = ["[UNK]", "low", "##in", "##g"]
    assert measure_coverage(vocabulary, counts) == Coverage(6 / 4, 3 / 5, 1 / 5)
