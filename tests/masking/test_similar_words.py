import numpy as np
import pytest
from small_texts import VOCABULARY

from keras_bert_suite import WordPieceTokenizer, find_similar_words
from keras_bert_suite.masking import similar_words
from keras_bert_suite.masking.similar_words import SimilarWords

WORDS = ["good", "bad", "dull", "film", "plot", "uns", "goods", "the", "was", "and"]


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def find_in_a_loop(words, vectors, sizes, least):
    """dict of word -> the word of the greatest cosine among those of the same size."""
    found = {}
    for word, vector, size in zip(words, vectors, sizes, strict=True):
        cosines = {
            other: vector @ theirs / np.sqrt((vector @ vector) * (theirs @ theirs))
            for other, theirs, their_size in zip(words, vectors, sizes, strict=True)
            if other != word and their_size == size
        }
        nearest = max(cosines, key=cosines.get)
        if cosines[nearest] >= least:
            found[word] = nearest
    return found


@pytest.mark.parametrize("most_cosines", [1, 20, 2**24])
@pytest.mark.parametrize("least", [-1.0, 0.3])
def test_nearest_words_equal_a_loop(tokenizer, monkeypatch, most_cosines, least):
    monkeypatch.setattr(similar_words, "MOST_COSINES", most_cosines)
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 5))
    sizes = [len(row) for row in tokenizer.tokenize(WORDS)]
    assert sorted(set(sizes)) == [1, 2]
    found = find_similar_words(WORDS, vectors, tokenizer, least_cosine=least)
    wanted = find_in_a_loop(WORDS, vectors, sizes, least)
    assert found == wanted and (len(found) == len(WORDS)) == (least == -1)


def test_words_that_cannot_be_compared(tokenizer):
    words = ["good", "GOOD", "bad", "龥", "film", "uns"]
    vectors = [[1, 0], [9, 9], [1, 0.1], [1, 0], [0, 0], [1, 0]]
    # "GOOD" has the tokens of "good", "龥" is unknown, "film" has no direction, "uns" is alone.
    assert find_similar_words(words, vectors, tokenizer) == {"good": "bad", "bad": "good"}
    with pytest.raises(ValueError, match=r"each of 2 words, got \(1, 2\)"):
        find_similar_words(["good", "bad"], [[1, 2]], tokenizer)
    with pytest.raises(ValueError, match="vectors must be finite"):
        find_similar_words(["good", "bad"], [[1, 2], [1, np.nan]], tokenizer)


def test_tokens_of_similar_words(tokenizer):
    un, s, good, bad, film = map(VOCABULARY.index, ("un", "##s", "good", "bad", "film"))
    table = SimilarWords(tokenizer, {"goods": "uns", "good": "bad", "film": "goods"})
    token_ids = np.array([[2, good, s, good, film, 3]])
    begins = np.array([[True, True, False, True, True, True]])
    # "goods" has two tokens, and "film" one.
    assert table.find(token_ids, begins).tolist() == [[-1, un, s, bad, -1, -1]]


def test_bad_similar_words(tokenizer):
    with pytest.raises(ValueError, match="None of the 1 pairs of similar_words has two words of"):
        SimilarWords(tokenizer, {"film": "goods"})
