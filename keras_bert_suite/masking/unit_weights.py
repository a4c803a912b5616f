"""Weights units, so that some are masked more often: in most cases rare words and entities."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_bert_suite.masking.token_sequences import TokenSequences, tokenize_in_text


def rarity_weights(counts: Any, power: float = 0.5) -> Any:
    """Weights that fall with the frequency of words or tokens.

    A weight is `((count + 1) / (greatest count + 1)) ** -power`. So the most frequent word has the
    weight 1, and with the default power a word that is a hundred times rarer has the weight 10.
    word2vec draws words with such powers of their frequencies.

    >>> rarity_weights({"the": 99, "Turing": 0})
    {'the': 1.0, 'Turing': 10.0}

    Args:
        counts: mapping of words or phrases to their counts in a corpus, or an array (V,) of the
            counts of tokens; none is negative.
        power: float, not negative. 0 gives all the same weight.

    Returns:
        dict of str -> float, or float64 (V,).

    Raises:
        ValueError: if a count is negative or not finite, or if there is no count.
    """
    is_mapping = isinstance(counts, Mapping)
    numbers = np.array(list(counts.values()) if is_mapping else counts, "float64")
    if not numbers.size or not np.isfinite(numbers).all() or numbers.min() < 0:
        raise ValueError(f"counts must be at least one number from 0 on, got {counts!r}.")
    weights = ((numbers + 1) / (numbers.max() + 1)) ** -power
    return dict(zip(counts, weights.tolist(), strict=True)) if is_mapping else weights


class TokenWeights:
    """The weight of a unit is the greatest of the weights of its tokens, float (V,), positive."""

    def __init__(self, tokenizer, weights):
        self._weights = np.asarray(weights, "float64")
        size = tokenizer.vocabulary_size()
        if self._weights.shape != (size,):
            raise ValueError(
                f"unit_weights must have a weight for each of the {size} tokens of the vocabulary, "
                f"got an array of shape {self._weights.shape}."
            )
        self.least = _find_least(self._weights)

    def weigh(self, token_ids, begins):
        """float (n,), the weights of the n units that begin where `begins` (B, L) is true."""
        return np.maximum.reduceat(self._weights[token_ids.ravel()], np.flatnonzero(begins))


class PhraseWeights:
    """Words and phrases have the positive weights of a mapping, and other units the weight 1."""

    def __init__(self, tokenizer, weights):
        variants = tokenize_in_text(tokenizer, list(weights), "unit_weights")
        rows = [
            (row, w) for rows in variants for row, w in zip(rows, weights.values(), strict=True)
        ]
        rows = [(row, weight) for row, weight in rows if row]
        self._sequences = TokenSequences([row for row, _ in rows], tokenizer.vocabulary_size())
        # The last is for units that are not in the mapping, which have the number -1.
        self._weights = np.array([*(weight for _, weight in rows), 1.0])
        self.least = _find_least(self._weights)

    def weigh(self, token_ids, begins):
        """As `TokenWeights.weigh`."""
        return self._weights[self._sequences.match_units(token_ids, begins)[begins]]


def _find_least(weights):
    if not (weights > 0).all() or not np.isfinite(weights).all():
        raise ValueError(
            f"unit_weights must be positive and finite, got {weights}. For counts use "
            "rarity_weights(counts)."
        )
    return weights.min()


def weigh_keys(keys: np.ndarray, weights: np.ndarray, least: float) -> np.ndarray:
    """Makes random keys whose order is a draw without replacement, in proportion to weights.

    Of units that are visited by ascending key, each next unit is drawn from the units that are
    left: unit i with the probability w_i / sum of the weights left. For that, unit i gets an
    exponential random number of rate w_i (Efraimidis and Spirakis, 2006,
    https://doi.org/10.1016/j.ipl.2005.11.003), and the numbers are brought to [0, 1). The keys are
    uniform in [0, 1), float (n,), and no weight is below `least`.
    """
    weighed = -np.expm1(np.log1p(-keys) * (least / weights))
    return np.minimum(weighed, 1.0 - 2.0**-44)  # below the key of columns that are not visited
