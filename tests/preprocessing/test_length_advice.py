"""The advice on a sequence length, held against NumPy's quantiles and counts by hand."""

import numpy as np
import pytest
from small_texts import VOCABULARY

from keras_bert_suite import SegmentPacker, WordPieceTokenizer
from keras_bert_suite.preprocessing.length_advice import LengthCut, advise_length


@pytest.fixture(scope="module")
def packer():
    return SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)


def make_texts(*num_words):
    return ["good " * n for n in num_words]


def test_literally(packer):
    advice = packer.suggest_sequence_length(make_texts(8, 0, 98, 298), coverage=0.75)
    assert advice.lengths.tolist() == [2, 10, 100, 300]
    assert advice.sequence_length == 104
    # Of 404 tokens, 300 - 104 + 2 special ones in each row; 216 of 412 remain.
    assert advice.cuts == (
        LengthCut(64, rows=0.5, tokens=(36 + 236) / 404, cost=140 / 216),
        LengthCut(104, rows=0.25, tokens=196 / 404, cost=1.0),
        LengthCut(128, rows=0.25, tokens=172 / 404, cost=240 / 216),
        LengthCut(256, rows=0.25, tokens=44 / 404, cost=368 / 216),
        LengthCut(512, rows=0.0, tokens=0.0, cost=412 / 216),
    )
    assert str(advice) == (
        "4 rows of 2 to 300 tokens, half of them up to 10.\n"
        "sequence_length=104 keeps 75.0% of them whole.\n"
        "\n"
        "   length  rows cut  tokens cut   cost\n"
        "       64     50.0%       67.3%   0.65\n"
        "->    104     25.0%       48.5%   1.00\n"
        "      128     25.0%       42.6%   1.11\n"
        "      256     25.0%       10.9%   1.70\n"
        "      512      0.0%        0.0%   1.91"
    )


@pytest.mark.parametrize("coverage", [0.01, 0.07, 0.5, 0.9, 0.99, 1.0])
def test_the_advice_is_a_quantile(coverage):
    lengths = np.random.default_rng(0).lognormal(4, 0.7, 500).astype(int) + 2
    advice = advise_length(lengths, 2, coverage)
    wanted = np.quantile(lengths, coverage, method="inverted_cdf")
    assert 0 <= advice.sequence_length - wanted < 8 and advice.sequence_length % 8 == 0
    for cut in advice.cuts:
        assert cut.rows == np.count_nonzero(lengths > cut.sequence_length) / 500


def test_a_whole_number_of_rows_is_enough():
    # 0.07 * 100 is a little more than 7.
    assert advise_length(np.arange(1, 101) * 8, 2, 0.07).sequence_length == 56


def test_the_packer_leaves_that_share_whole(packer):
    texts = make_texts(*range(100)), make_texts(*reversed(range(0, 200, 2)))
    advice = packer.suggest_sequence_length(*texts, coverage=0.9)
    assert advice.lengths.tolist() == sorted(3 + n + 198 - 2 * n for n in range(100))
    longer = SegmentPacker(packer.tokenizer, advice.sequence_length)
    places = longer.pack(*texts)["padding_mask"].sum()
    cut = next(c for c in advice.cuts if c.sequence_length == advice.sequence_length)
    num_tokens = advice.lengths.sum()
    assert num_tokens - places == round(cut.tokens * (num_tokens - 300))


def test_other_forms_of_texts(packer):
    assert packer.suggest_sequence_length("good " * 12).sequence_length == 16
    empty = packer.suggest_sequence_length(["", " "])
    assert (empty.sequence_length, empty.cuts[-1]) == (8, LengthCut(512, 0.0, 0.0, 1.0))
    tf = pytest.importorskip("tensorflow_text") and pytest.importorskip("tensorflow")
    texts = make_texts(3, 70, 9)
    assert str(packer.suggest_sequence_length(tf.constant(texts))) == str(
        packer.suggest_sequence_length(texts)
    )


@pytest.mark.parametrize("coverage", [0, -0.1, 1.01, 99, float("nan")])
def test_bad_coverage(packer, coverage):
    with pytest.raises(ValueError, match=f"coverage must be .*got {coverage}"):
        packer.suggest_sequence_length(["good"], coverage=coverage)


def test_no_texts(packer):
    with pytest.raises(ValueError, match="at least one text, got none"):
        packer.suggest_sequence_length([])
    with pytest.raises(ValueError, match="at least one segment"):
        packer.suggest_sequence_length()


@pytest.mark.parametrize("num_words", [[0], [*range(60), 5000]])
def test_the_picture_is_written(packer, tmp_path, num_words):
    image = pytest.importorskip("matplotlib.image")
    packer.suggest_sequence_length(make_texts(*num_words)).plot(tmp_path / "lengths.png")
    picture = image.imread(tmp_path / "lengths.png")
    assert min(picture.shape[:2]) > 400
    assert picture[..., :3].std() > 0.05
