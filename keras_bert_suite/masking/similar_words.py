"""Similar words instead of the mask token, as MacBERT masks.

MacBERT (Cui et al., 2020, https://arxiv.org/abs/2004.13922) replaces 80% of the chosen words by
similar words, which it gets from vectors of words, 10% by random words, and keeps 10%. Where there
is no similar word, a random word is taken. In an n-gram each word is replaced by itself. The paper
is silent about a similar word with another number of tokens, and its code was not published. Here
the two have the same number, so that each token has one prediction.
"""

from collections.abc import Sequence

import keras_hub
import numpy as np

from keras_bert_suite.masking.maskable_units import find_first_columns
from keras_bert_suite.masking.token_sequences import TokenSequences, tokenize_in_text

#: The most cosines that `find_similar_words` has in memory at once.
MOST_COSINES = 2**24


def find_similar_words(
    words: Sequence[str],
    vectors: np.ndarray,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    least_cosine: float = 0.0,
) -> dict[str, str]:
    """Finds the most similar word of each word, among the words of the same number of tokens.

    It computes the cosines of all pairs of words with as many tokens, in parts of 64 MB. Beside
    them it has a copy of the vectors in memory.

    Args:
        words: list of N str, such as the words of word2vec or GloVe. Words with an unknown token
            are left out. Of words with the same tokens, such as "The" and "the" for an uncased
            tokenizer, the first is taken.
        vectors: float (N, D).
        tokenizer: tokenizer of this package.
        least_cosine: float. A word whose most similar word has a smaller cosine has none.

    Returns:
        dict of word -> word, for `TokenMasker(similar_words=...)`.

    Raises:
        ValueError: if the shapes do not match, or a vector is not finite.
    """
    words, vectors = list(words), np.asarray(vectors, "float32")
    if len(vectors) != len(words) or not np.isfinite(vectors).all():
        raise ValueError(
            f"vectors must be finite, a row for each of {len(words)} words, got {vectors.shape}."
        )
    rows, *_ = tokenize_in_text(tokenizer, words, "words")
    by_size: dict[int, dict[tuple[int, ...], int]] = {}
    for number, row in enumerate(rows):
        if row and vectors[number].any():
            by_size.setdefault(len(row), {}).setdefault(tuple(row), number)
    similar = {}
    for of_size in by_size.values():
        numbers = np.array(list(of_size.values()))
        nearest, cosines = _find_nearest(vectors[numbers])
        for number, near, cosine in zip(numbers, numbers[nearest], cosines, strict=True):
            if near != number and cosine >= least_cosine:
                similar[words[number]] = words[near]
    return similar


def _find_nearest(vectors):
    """(row with the greatest cosine of each row, int (n,); that cosine, float (n,))."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    count = len(vectors)
    nearest, cosines = np.zeros(count, "int64"), np.zeros(count, "float32")
    size = max(1, MOST_COSINES // count)
    for start in range(0, count, size):
        part = vectors[start : start + size] @ vectors.T
        rows = np.arange(len(part))
        part[rows, start + rows] = -np.inf
        nearest[start : start + size] = np.argmax(part, axis=1)
        cosines[start : start + size] = np.max(part, axis=1)
    return nearest, cosines


class SimilarWords:
    """The similar words of a mapping, as token ids.

    A pair whose words have different numbers of tokens is left out. If no pair is left, that is a
    ValueError.
    """

    def __init__(self, tokenizer, similar_words):
        words, others = (
            tokenize_in_text(tokenizer, list(texts), "similar_words")
            for texts in (similar_words, similar_words.values())
        )
        pairs = [
            (row, other)
            for rows, other_rows in zip(words, others, strict=True)
            for row, other in zip(rows, other_rows, strict=True)
            if row and len(row) == len(other)
        ]
        if not pairs:
            raise ValueError(
                f"None of the {len(similar_words)} pairs of similar_words has two words of equally "
                "many tokens, as find_similar_words finds them."
            )
        self._sequences = TokenSequences([row for row, _ in pairs], tokenizer.vocabulary_size())
        lengths = [len(other) for _, other in pairs]
        self._starts = np.cumsum(lengths) - lengths
        self._ids = np.array([id for _, other in pairs for id in other])

    def find(self, token_ids, begins):
        """The tokens that replace each word, int (B, L); -1 for a word without a similar word.

        Words begin at `begins`, bool (B, L).
        """
        first = find_first_columns(begins)
        numbers = self._sequences.match_units(token_ids, begins)
        numbers = np.take_along_axis(numbers, first, axis=1)
        places = self._starts[numbers] + np.arange(begins.shape[1]) - first
        # The places of words without a similar word may lie beyond the end.
        return np.where(numbers >= 0, self._ids[np.minimum(places, len(self._ids) - 1)], -1)
