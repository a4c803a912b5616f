"""Finds the tokens that are masked together: a word, a Chinese word, or a phrase.

The units of a batch are one boolean array (B, L), true where a unit begins. Special tokens and
padding are never masked. Each such token is one unit, so that no unit reaches across it.

ERNIE 1.0 (Sun et al., 2019, https://arxiv.org/abs/1904.09223) gets phrases from tools of each
language, and entities too. Here they are from a lexicon, or from a tagger that is passed in.
"""

import functools

import numpy as np

from keras_bert_suite.masking.token_sequences import TokenSequences, tokenize_in_text
from keras_bert_suite.tokenizers.unicode_rules import CJK, membership


class MaskVocabulary:
    """The properties of a vocabulary that masking needs, as tables over its ids.

    `ordinary_only` leaves special tokens and unused tokens out of `random_ids`.

    Attributes:
        tokens: list of V str.
        mask_token_id: int.
        eligible: bool (V,), true for all tokens except special tokens.
        continues: bool (V,), true for tokens that continue a word.
        ends: bool (V,), true for tokens that end a word.
        blank: bool (V,), true for tokens that are spaces alone.
        cjk: bool (V,), true for tokens that are one Chinese character, which BERT reads as a word.
            It is false everywhere for tokenizers without such tokens.
        random_ids: int32 (n,), the ids that a random token is drawn from.

    Raises:
        ValueError: if the vocabulary has no mask token, or `random_ids` would be empty.
    """

    def __init__(self, tokenizer, ordinary_only):
        self.tokens = tokenizer.get_vocabulary()
        self.mask_token_id = tokenizer.mask_token_id
        if self.mask_token_id is None:
            raise ValueError(
                f"The vocabulary of {len(self.tokens)} tokens lacks the mask token, "
                f"{tokenizer.mask_token!r}. Name another one with the tokenizer's `mask_token`."
            )
        self.eligible = np.ones(len(self.tokens), bool)
        self.eligible[tokenizer.special_token_ids] = False
        self.continues = tokenizer.find_continuations()
        self.ends = tokenizer.find_endings()
        self.blank = tokenizer.find_blanks()
        self.cjk = np.zeros(len(self.tokens), bool)
        if tokenizer.has_cjk_pieces:
            self.cjk[:] = [len(token) == 1 and membership(CJK)[ord(token)] for token in self.tokens]
        drawn = tokenizer.find_ordinary() if ordinary_only else np.ones_like(self.cjk)
        self.random_ids = np.flatnonzero(drawn).astype("int32")
        if not len(self.random_ids):
            raise ValueError(f"All {len(self.tokens)} tokens are special or unused.")


class UnitFinder:
    """Finds the units of packed rows.

    `word_segmenter` is a function as for `join_characters`, and `phrases` are `LexiconPhrases` or
    `TaggedPhrases`. Both may be None.
    """

    def __init__(self, vocabulary, word_segmenter=None, phrases=None):
        self._vocabulary = vocabulary
        self._word_segmenter = word_segmenter
        self._phrases = phrases

    def find(self, token_ids, eligible):
        """Finds where words and units begin, bool (B, L) twice, in int (B, L).

        A unit is a word, or all words of a phrase. `eligible`, bool (B, L), may be masked.
        """
        vocabulary = self._vocabulary
        continues = vocabulary.continues[token_ids]
        before = token_ids[:, :-1]
        continues[:, 1:] &= ~vocabulary.ends[before]
        continues[:, 1:] |= vocabulary.blank[before]
        words = find_words(eligible, continues)
        if self._word_segmenter is not None:
            cjk = eligible & vocabulary.cjk[token_ids]
            words = join_characters(words, token_ids, cjk, vocabulary.tokens, self._word_segmenter)
        if self._phrases is None:
            return words, words
        return words, self._phrases.join(words, token_ids, eligible)


def find_words(eligible, continues):
    """Finds where words begin, bool (B, L). A word is a token and the tokens that continue it.

    If truncation has cut off the beginning of a word, its first remaining token begins a word.
    `eligible` tokens may be masked.
    """
    begins = np.ones_like(eligible)
    begins[:, 1:] = ~(continues[:, 1:] & eligible[:, 1:] & eligible[:, :-1])
    return begins


def find_first_columns(begins):
    """int64 (B, L), for each token the column where its unit begins.

    `begins`, bool (B, L), says where units begin. It is true in the first column.
    """
    columns = np.arange(begins.shape[1])
    return np.maximum.accumulate(np.where(begins, columns, 0), axis=1)


def join_characters(begins, token_ids, cjk, tokens, word_segmenter):
    """Makes one unit of the characters of a Chinese word: bool (B, L), where units begin.

    In sequences of `cjk` tokens, which are one CJK character each, a unit begins where
    `word_segmenter` begins a word. Everywhere else it is `begins`. The segmenter splits a str into
    a list of words, and leaves nothing out; otherwise it is a ValueError.
    """
    begins = begins & ~cjk
    for row, first, end in _find_runs(cjk):
        text = "".join([tokens[i] for i in token_ids[row, first:end].tolist()])
        words = word_segmenter(text)
        if "".join(words) != text:
            raise ValueError(
                f"word_segmenter must split {text!r} into words that join to it, got {words!r}."
            )
        lengths = np.array([len(word) for word in words])
        begins[row, first + np.cumsum(lengths) - lengths] = True
    return begins


def _find_runs(is_inside):
    """(row, first, end) of each run of columns that are true, of bool (B, L)."""
    # A false column on either side keeps runs from reaching into the next row.
    steps = np.diff(np.pad(is_inside, ((0, 0), (1, 1))).astype("int8"), axis=1)
    rows, firsts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    return zip(rows.tolist(), firsts.tolist(), ends.tolist(), strict=True)


class LexiconPhrases:
    """Joins the words of the phrases of a lexicon.

    A row is read from left to right. The longest phrase that begins at a word is taken, and the
    reading continues after its end. A phrase begins and ends where words do.
    """

    def __init__(self, tokenizer, phrases):
        variants = tokenize_in_text(tokenizer, list(phrases), "phrases")
        rows = [row for rows in variants for row in rows if row]
        self._sequences = TokenSequences(rows, tokenizer.vocabulary_size())

    def join(self, begins, token_ids, eligible):
        """Joins words to units: bool (B, L), where units begin, from where words begin."""
        num_rows, length = begins.shape
        columns = np.arange(length)
        barrier = np.where(eligible, length, columns)
        barrier = np.minimum.accumulate(barrier[:, ::-1], axis=1)[:, ::-1]
        may_end = np.ones_like(begins)
        may_end[:, :-1] = begins[:, 1:]
        rows, firsts = np.nonzero(begins & eligible)
        _, sizes = self._sequences.match(
            token_ids.ravel(),
            rows * length + firsts,
            barrier[rows, firsts] - firsts,
            may_end.ravel(),
        )
        matched = np.zeros((num_rows, length + 1), "int64")
        matched[rows, firsts] = sizes
        # The first column from here on where a phrase begins; L if there is none.
        following = np.where(matched > 0, np.arange(length + 1), length)
        following = np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1]
        # How many phrases continue at a column, as differences from the column before.
        steps = np.zeros((num_rows, length + 1), "int64")
        row, column = np.arange(num_rows), following[:, 0]
        while True:
            row, column = row[column < length], column[column < length]
            if not len(row):
                break
            end = column + matched[row, column]
            steps[row, column + 1] += 1
            steps[row, end] -= 1
            column = following[row, end]
        return begins & (np.cumsum(steps[:, :length], axis=1) == 0)


class TaggedPhrases:
    """Joins the words of the phrases that a tagger finds.

    The tagger is a function from a list of n words, str, to the ranges of the phrases in it. A
    range is a pair `(start, end)` with 0 <= start < end <= n. The ranges are in order and do not
    overlap.
    """

    def __init__(self, tokenizer, tagger):
        self._tagger = tagger

        @functools.lru_cache(maxsize=2**17)
        def read_word(ids):
            return "".join(tokenizer.detokenize(list(ids)).split())

        self._read_word = read_word

    def join(self, begins, token_ids, eligible):
        """As `LexiconPhrases.join`. The tagger gets the words between two special tokens."""
        units = begins.copy()
        for row, first, end in _find_runs(eligible):
            starts = first + np.flatnonzero(begins[row, first:end])
            ids_of_words = np.split(token_ids[row, first:end], starts[1:] - first)
            words = [self._read_word(tuple(ids.tolist())) for ids in ids_of_words]
            for start, stop in self._find_ranges(words):
                units[row, starts[start + 1 : stop]] = False
        return units

    def _find_ranges(self, words):
        """The ranges that the tagger finds, list of (int, int)."""
        ranges = list(self._tagger(list(words)))
        edges = [0, *(edge for pair in ranges for edge in pair), len(words)]
        if edges != sorted(edges) or any(start == end for start, end in ranges):
            raise ValueError(
                f"The function `phrases` must find ranges (start, end) of the {len(words)} words "
                f"{words!r}, in order and without overlap, got {ranges!r}."
            )
        return ranges
