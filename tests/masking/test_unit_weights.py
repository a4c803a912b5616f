import itertools

import numpy as np
import pytest
from scipy import stats
from small_texts import VOCABULARY

from keras_bert_suite import WordPieceTokenizer, rarity_weights
from keras_bert_suite.masking.unit_weights import (
    PhraseWeights,
    TokenWeights,
    weigh_keys,
)


def test_orders_are_draws_without_replacement():
    weights = np.array([0.5, 1.0, 2.0, 7.0])
    keys = np.random.default_rng(0).random((60_000, 4))
    weighed = np.stack(
        [weigh_keys(k, np.full(60_000, w), 0.5) for k, w in zip(keys.T, weights, strict=True)]
    )
    assert weighed.min() >= 0 and weighed.max() < 1
    orders = np.argsort(weighed, axis=0).T @ [64, 16, 4, 1]
    counts, wanted = [], []
    for order in itertools.permutations(range(4)):
        left = np.array([weights[list(order[place:])].sum() for place in range(4)])
        wanted.append(60_000 * np.prod(weights[list(order)] / left))
        counts.append(np.count_nonzero(orders == np.array(order) @ [64, 16, 4, 1]))
    assert sum(counts) == 60_000
    assert stats.chisquare(counts, wanted).pvalue > 0.01


def test_the_greatest_key_comes_before_columns_that_are_left_out():
    keys = np.array([0.0, np.nextafter(1, 0)])
    weighed = weigh_keys(keys, np.ones(2), 1.0)
    assert weighed[0] == 0 and int(weighed[1] * 2.0**44) < 2**44


def test_weights_of_pieces_and_of_phrases():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    un, s, good, film = (VOCABULARY.index(piece) for piece in ("un", "##s", "good", "film"))
    token_ids = np.array([[2, un, s, good, film, 3]])
    begins = np.array([[True, True, False, True, False, True]])
    weights = np.ones(len(VOCABULARY))
    weights[[un, s, good, 3]] = 2, 5, 3, 0.5
    pieces = TokenWeights(tokenizer, weights)
    assert pieces.weigh(token_ids, begins).tolist() == [1, 5, 3, 0.5] and pieces.least == 0.5
    phrases = PhraseWeights(tokenizer, {"uns": 9, "good": 7, "good film": 0.25})
    assert phrases.weigh(token_ids, begins).tolist() == [1, 9, 0.25, 1] and phrases.least == 0.25
    with pytest.raises(ValueError, match=r"each of the \d+ tokens of the vocabulary.* \(3,\)"):
        TokenWeights(tokenizer, [1, 2, 3])


def test_rarity():
    assert rarity_weights({"the": 99, "Turing": 0}) == {"the": 1.0, "Turing": 10.0}
    np.testing.assert_allclose(
        rarity_weights([0, 8, 26], power=1 / 3), [3, 27 ** (1 / 3) / 9 ** (1 / 3), 1]
    )
    assert rarity_weights([5, 1], power=0).tolist() == [1, 1]
    for counts in ([], [1, -1], [np.nan], {}):
        with pytest.raises(ValueError, match="counts must be at least one number from 0 on"):
            rarity_weights(counts)


@pytest.mark.parametrize("weight", [0, -1, np.inf, np.nan])
def test_bad_weights(weight):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    weights = np.ones(tokenizer.vocabulary_size())
    weights[7] = weight
    with pytest.raises(ValueError, match="unit_weights must be positive and finite"):
        TokenWeights(tokenizer, weights)
    with pytest.raises(ValueError, match="unit_weights must be positive and finite"):
        PhraseWeights(tokenizer, {"good": weight})
