"""The advice on a sequence length, held against counts by hand."""

import numpy as np
import pytest
from small_texts import VOCABULARY

from keras_bert_suite import SegmentPacker, WordPieceTokenizer
from keras_bert_suite.preprocessing.length_advice import advise_length


@pytest.fixture(scope="module")
def packer():
    return SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)


def make_texts(*num_words):
    return ["good " * n for n in num_words]


def test_literally(packer):
    # Lengths of 2, 10, 100 and 300 tokens.
    advice = packer.suggest_sequence_length(make_texts(8, 0, 98, 298), coverage=0.75)
    assert advice.sequence_length == 104
    assert advice.cut_rows == {16: 0.5, 64: 0.5, 104: 0.25, 128: 0.25, 256: 0.25, 512: 0.0}


@pytest.mark.parametrize("coverage", [0.01, 0.07, 0.5, 0.9, 0.99, 1.0])
def test_a_whole_number_of_rows_is_enough(coverage):
    # 0.07 * 100 is a little more than 7.
    assert advise_length(np.arange(1, 101) * 8, coverage).sequence_length == round(800 * coverage)


def test_the_packer_leaves_that_share_whole(packer):
    texts = make_texts(*range(100)), make_texts(*reversed(range(0, 200, 2)))
    advice = packer.suggest_sequence_length(*texts, coverage=0.9)
    lengths = np.array([3 + n + 198 - 2 * n for n in range(100)])
    assert advice.cut_rows[advice.sequence_length] == np.mean(lengths > advice.sequence_length)
    assert 0 <= advice.sequence_length - np.sort(lengths)[89] < 8


def test_a_text_without_a_batch(packer):
    assert packer.suggest_sequence_length("good " * 12).sequence_length == 16
