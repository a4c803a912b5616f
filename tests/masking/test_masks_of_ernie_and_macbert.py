"""`TokenMasker` with phrases, weights and similar words."""

import itertools
import json
import pickle

import keras
import numpy as np
import pytest
from masking.test_token_masker import (
    CHINESE,
    MASK,
    OUTPUTS,
    assert_same_rows,
    chosen,
    pack,
    pack_reviews,
    repeat,
    segment_film,
)
from scipy import stats
from small_texts import VOCABULARY, WORDS

from keras_bert_suite import SegmentPacker, TokenMasker, WordPieceTokenizer

GOOD, BAD, DULL, FILM, PLOT, UN, S = map(
    VOCABULARY.index, ("good", "bad", "dull", "film", "plot", "un", "##s")
)
SIMILAR = {"good": "dull", "film": "plot", "goods": "uns", "bad": "goods"}
ALWAYS = {"mask_token_rate": 1.0, "random_token_rate": 0.0}


@keras.saving.register_keras_serializable(package="test_masks_of_ernie_and_macbert")
def tag_films(words):
    return [(i, i + 2) for i in range(len(words) - 1) if words[i + 1] == "film"]


ARGUMENTS = {
    "lexicon": {"unit": "word", "phrases": [f"{a} {b}" for a in WORDS for b in WORDS]},
    "tagger": {"unit": "ngram", "phrases": tag_films},
    "weights": {"unit": "token", "unit_weights": np.linspace(1, 9, len(VOCABULARY))},
    "phrase weights": {"unit": "span", "unit_weights": {"good": 3.0, "film": 0.5}},
    "similar": {"unit": "ngram", "similar_words": SIMILAR, "ngram_shares": (0.4, 0.3, 0.2, 0.1)},
}


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


@pytest.mark.parametrize("phrases", [["good film", "uns"], tag_films])
def test_phrases_are_masked_as_a_whole(tokenizer, phrases):
    masker = TokenMasker(tokenizer, unit="word", phrases=phrases, max_predictions=2, rate=1.0)
    flags = chosen(masker(repeat(pack("good film bad plot"), 300), np.arange(300)))[:, 1:-1]
    rows = {tuple(row) for row in flags.tolist()}
    assert rows == {(True, True, False, False), (False, False, True, True)}
    # A phrase is visited as often as a word, and the words visited before it fit beside each other.
    assert stats.binomtest(int(flags[:, 0].sum()), 300, 1 / 3).pvalue > 0.01


def test_phrases_of_chinese_words():
    tokenizer = WordPieceTokenizer(CHINESE)
    masker = TokenMasker(
        tokenizer,
        unit="word",
        phrases=["好看电影"],
        word_segmenter=segment_film,
        rate=0.5,
        **ALWAYS,
    )
    batch = SegmentPacker(tokenizer, padding_lengths=None)(["这好看电影", "这电影好"] * 50)
    rows = {"".join(CHINESE[i] for i in row) for row in masker(batch, np.arange(100))["token_ids"]}
    # Of 7 tokens round(3.5) = 4 may be masked, of 6 with a word of two characters 3.
    assert rows == {
        "[CLS]这[MASK][MASK][MASK][MASK][SEP]",
        "[CLS][MASK]好看电影[SEP]",
        "[CLS][MASK][MASK][MASK]好[SEP][PAD]",
        "[CLS]这[MASK][MASK][MASK][SEP][PAD]",
        "[CLS][MASK]电影[MASK][SEP][PAD]",
    }


@pytest.mark.parametrize("unit", ["token", "word", "span", "ngram"])
def test_units_are_drawn_by_their_weights(tokenizer, unit):
    """Two of four words, without replacement: the exact probability of each pair."""
    weights = {"good": 4.0, "film": 2.0, "bad": 0.5}  # "plot" has the weight 1.
    arguments = {"max_span_length": 1, "ngram_shares": (1,), "max_predictions": 2, "rate": 1.0}
    masker = TokenMasker(tokenizer, unit=unit, unit_weights=weights, **arguments)
    masked = masker(repeat(pack("good film bad plot"), 20_000), np.arange(20_000))
    pairs = masked["mask_positions"] @ [5, 1]
    numbers = np.array([4.0, 2.0, 0.5, 1.0])
    total = numbers.sum()
    counts, wanted = [], []
    for i, j in itertools.combinations(range(4), 2):
        first = numbers[i] / total * numbers[j] / (total - numbers[i])
        second = numbers[j] / total * numbers[i] / (total - numbers[j])
        wanted.append(20_000 * (first + second))
        counts.append(np.count_nonzero(pairs == (i + 1) * 5 + j + 1))
    assert sum(counts) == 20_000
    assert stats.chisquare(counts, wanted).pvalue > 0.01


def test_similar_words_literally(tokenizer):
    batch = pack("good film good ##s good", "film [SEP] un ##s good ##s")
    masked = TokenMasker(
        tokenizer, unit="word", rate=1.0, similar_words={**SIMILAR, "uns": "uns"}, **ALWAYS
    )(batch, [0, 1])
    assert masked["token_ids"][:, 1:-1].tolist() == [
        [DULL, PLOT, UN, S, DULL, 3],
        [PLOT, 3, UN, S, UN, S],
    ]
    assert masked["mask_ids"][0, :5].tolist() == [GOOD, FILM, GOOD, S, GOOD]


@pytest.mark.parametrize("unit", ["word", "span", "ngram"])
def test_shares_of_macbert(tokenizer, unit):
    batch = repeat(pack("good ##s"), 30_000)
    masked = TokenMasker(tokenizer, unit=unit, rate=1.0, similar_words=SIMILAR)(
        batch, np.arange(30_000)
    )["token_ids"][:, 1:3]
    assert not (masked == MASK).any()
    # One draw for the word: both tokens are similar, random or kept.
    n = len(VOCABULARY) - 5
    similar, kept = ((masked == ids).all(axis=1).sum() for ids in ([UN, S], [GOOD, S]))
    wanted = np.array([0.8 + 0.1 / n**2, 0.1 + 0.1 / n**2, 0.1 - 0.2 / n**2]) * 30_000
    assert stats.chisquare([similar, kept, 30_000 - similar - kept], wanted).pvalue > 0.01


def test_a_word_without_a_similar_word_becomes_random_tokens(tokenizer):
    # "bad" has a similar word, of two tokens.
    batch = repeat(pack("bad"), 20_000)
    masked = TokenMasker(tokenizer, unit="word", similar_words=SIMILAR)(batch, np.arange(20_000))
    drawn = masked["token_ids"][:, 1]
    n = len(VOCABULARY) - 5
    wanted = np.full(n, 0.9 / n)
    wanted[BAD - 5] += 0.1
    counts = np.bincount(drawn, minlength=len(VOCABULARY))[5:]
    assert stats.chisquare(counts, wanted * 20_000).pvalue > 0.01


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_row_is_masked_alike_in_whatever_batch(tokenizer, name):
    masker = TokenMasker(tokenizer, rate=0.4, seed=5, **ARGUMENTS[name])
    batch, row_ids = pack_reviews(64), np.arange(1000, 1064)
    masked = masker(batch, row_ids, epoch=2)
    plain = TokenMasker(tokenizer, rate=0.4, seed=5, unit=ARGUMENTS[name]["unit"])
    assert (masked["token_ids"] != plain(batch, row_ids, epoch=2)["token_ids"]).any()
    order = np.random.default_rng(0).permutation(64)[:20]
    part = {key: np.pad(array[order], ((0, 0), (0, 7))) for key, array in batch.items()}
    assert_same_rows(masked, masker(part, row_ids[order], epoch=2), order)
    empty = {key: array[:0] for key, array in batch.items()}
    assert masker(empty, np.zeros(0, int))["mask_ids"].shape[0] == 0


@pytest.mark.parametrize("name", ARGUMENTS)
def test_saved_and_sent(tokenizer, name):
    masker = TokenMasker(tokenizer, rate=0.4, **ARGUMENTS[name], name="masker")
    batch = pack_reviews(16)
    wanted = masker(batch, np.arange(16))
    twin = pickle.loads(pickle.dumps(masker))
    assert twin.get_config() == masker.get_config()
    assert_same_rows(wanted, twin(batch, np.arange(16)))
    twin = keras.layers.deserialize(json.loads(json.dumps(keras.layers.serialize(masker))))
    twin.tokenizer.set_vocabulary(VOCABULARY)
    assert twin.get_config() == masker.get_config()
    assert_same_rows(wanted, twin(batch, np.arange(16)))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_tensorflow_equals_numpy(tokenizer, name):
    tf = pytest.importorskip("tensorflow")
    masker = TokenMasker(tokenizer, rate=0.4, **ARGUMENTS[name])
    batch = pack_reviews(10)
    rows = tf.data.Dataset.from_tensor_slices(batch).enumerate().batch(10)
    (masked,) = rows.map(lambda i, row: masker(row, i, epoch=4)).as_numpy_iterator()
    assert_same_rows(masker(batch, range(10), epoch=4), masked)
    assert set(OUTPUTS) <= set(masked)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"phrases": ["good film"]}, 'unit="token" .* no use for phrases'),
        ({"similar_words": SIMILAR}, 'unit="token" .* no use for similar_words'),
        ({"unit": "word", "phrases": "good film"}, "phrases must be a list or set"),
        ({"unit": "word", "phrases": ["龥"]}, "None of the 1 texts in phrases"),
        ({"unit_weights": [1.0, 2.0]}, "unit_weights must have a weight for each of the"),
        ({"unit_weights": {"good": 0}}, "unit_weights must be positive and finite"),
    ],
)
def test_bad_arguments(tokenizer, arguments, error):
    with pytest.raises(ValueError, match=error):
        TokenMasker(tokenizer, **arguments)
