"""The steps that noises are made of: random words, spans of words, and tokens that are put in.

The words of rows are known by an array `word_starts`, bool (T,), true for the first token of each
word. The first token of a row begins a word. B rows, T tokens in all, N words.
"""

import functools
import math
from typing import Any

import numpy as np

from keras_bert_suite.masking.corruption import Draw
from keras_bert_suite.masking.maskable_units import MaskVocabulary
from keras_bert_suite.masking.ragged_rows import RaggedRows


def count_share(counts: np.ndarray, share: float) -> np.ndarray:
    """A share of each of some numbers, rounded up: int64 (B,).

    >>> count_share(np.array([0, 1, 10, 11]), 0.3)
    array([0, 1, 3, 4])
    """
    return np.ceil(np.round(counts * share, 9)).astype("int64")


def count_words(rows: RaggedRows) -> np.ndarray:
    """int64 (B,), the words of each row."""
    return np.bincount(rows.numbers[rows["word_starts"]], minlength=len(rows))


def choose_words(rows: RaggedRows, draw: Draw, counts: np.ndarray) -> RaggedRows:
    """Chooses `counts`, int (B,), words of each row at random.

    The result has `entries`, int64 (N,): the first token of each chosen word, as an entry of
    `rows`. The words of a row come in random order.
    """
    first = np.flatnonzero(rows["word_starts"])
    numbers = rows.numbers[first]
    # The sum orders by the row, and within it by the key.
    order = np.argsort(numbers + draw_for_entries(rows, draw, first), kind="stable")
    words = RaggedRows({"entries": first[order]}, count_words(rows))
    return words.keep(words.places < counts[words.numbers])


def find_ends(rows: RaggedRows, entries: np.ndarray, num_words: Any) -> np.ndarray:
    """int64 (N,), the ends of spans of words, by their first entries and numbers of words.

    An end is the entry after the last one. A span that is longer than its row ends with the row.
    """
    first = np.flatnonzero(rows["word_starts"])
    words = np.searchsorted(first, entries) + num_words
    ends = np.append(first, len(rows["word_starts"]))[np.minimum(words, len(first))]
    return np.minimum(ends, (rows.starts + rows.lengths)[rows.numbers[entries]])


def cover(size: int, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """bool (size,), the entries in at least one of the spans from `begins` to before `ends`."""
    steps = np.zeros(size + 1, "int64")
    np.add.at(steps, begins, 1)
    np.add.at(steps, ends, -1)
    return np.cumsum(steps[:-1]) > 0


def draw_for_entries(rows: RaggedRows, draw: Draw, entries: np.ndarray) -> np.ndarray:
    """float64 (N,), a random number for each of some entries."""
    return draw(int(rows.lengths.max(initial=0)))[rows.numbers[entries], rows.places[entries]]


def draw_masks(
    rows: RaggedRows,
    draw: Draw,
    entries: np.ndarray,
    vocabulary: MaskVocabulary,
    random_token_rate: float,
) -> np.ndarray:
    """int32 (N,), for each of some entries the mask token, or at this rate a random token."""
    kinds, fillers = (draw_for_entries(rows, draw, entries) for _ in range(2))
    ids = vocabulary.random_ids[(fillers * len(vocabulary.random_ids)).astype("int64")]
    return np.where(kinds < random_token_rate, ids, vocabulary.mask_token_id).astype("int32")


def insert_masks(
    rows: RaggedRows,
    draw: Draw,
    counts: np.ndarray,
    vocabulary: MaskVocabulary,
    random_token_rate: float,
) -> RaggedRows:
    """Inserts `counts`, int (B,), mask tokens in each row, all sets of places being equally likely.

    At a rate a random token is inserted instead. Each is a word of the sentence before it.
    """
    lengths = (rows.lengths + counts).astype(rows.lengths.dtype)
    # An inserted token may stand at any place of the longer row.
    grown = RaggedRows({"word_starts": np.ones(lengths.sum(), bool)}, lengths)
    inserted = np.zeros(lengths.sum(), bool)
    inserted[choose_words(grown, draw, counts)["entries"]] = True
    # The token itself, or that before an inserted token; in front of a row, the first one.
    sources = np.cumsum(~inserted) - 1
    sources = np.maximum(sources, np.repeat(rows.starts, lengths))
    entries = np.flatnonzero(inserted)
    grown = rows.take(sources, lengths)
    grown["word_starts"][entries] = True
    grown["token_ids"][entries] = draw_masks(grown, draw, entries, vocabulary, random_token_rate)
    return grown


@functools.cache
def find_poisson_shares(mean: float) -> np.ndarray:
    """float64 (K,), how often a span has 0, 1, ... words: a Poisson distribution without its tail.

    The tail is the numbers beyond the mean with a probability below 1e-7.
    """
    shares: list[float] = []
    while not shares or len(shares) <= mean or shares[-1] >= 1e-7:
        number = len(shares)
        shares.append(math.exp(number * math.log(mean) - mean - math.lgamma(number + 1)))
    return np.array(shares) / sum(shares)


def draw_spans(draw: Draw, budgets: np.ndarray, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Draws the lengths of spans of a row, until their sum is its budget.

    The last span is cut to the budget. The result is int64 (B, W), the lengths that are not 0, one
    after the other and then 0; and int64 (B,), how often the length 0 was drawn before the last
    span.
    """
    _, *shares = find_poisson_shares(mean)
    width = int(budgets.max(initial=0))
    drawn = np.searchsorted(np.cumsum(shares) / sum(shares), draw(width), side="right") + 1
    # Before a length that is not 0, the length 0 is drawn a geometric number of times: at least n
    # times with probability exp(-mean * n).
    empty = np.floor(np.log1p(-draw(width)) / -mean).astype("int64")
    before = np.cumsum(drawn, axis=1) - drawn
    lengths = np.clip(budgets[:, None] - before, 0, drawn)
    return lengths, np.sum(empty, axis=1, where=lengths > 0)
