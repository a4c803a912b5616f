"""Makes one unit of the words of a phrase or of an entity, as ERNIE masks them.

ERNIE 1.0 (Sun et al., 2019, https://arxiv.org/abs/1904.09223) gets phrases from tools of each
language, and entities too. Here they are from a lexicon, or from a tagger that is passed in.
B batch, L length.
"""

import functools

import numpy as np

from keras_bert_suite.masking.token_sequences import TokenSequences, tokenize_in_text


class LexiconPhrases:
    """Joins the words of the phrases of a lexicon.

    A row is read from left to right. The longest phrase that begins at a word is taken, and the
    reading continues after its end. A phrase begins and ends where words do.

    Args:
        tokenizer: `TextTokenizer`.
        phrases: collection of str.
    """

    def __init__(self, tokenizer, phrases):
        variants = tokenize_in_text(tokenizer, list(phrases), "phrases")
        rows = [row for rows in variants for row in rows if row]
        self._sequences = TokenSequences(rows, tokenizer.vocabulary_size())

    def join(self, begins, token_ids, eligible):
        """Joins words to units.

        Args:
            begins: bool (B, L), where words begin.
            token_ids: int (B, L).
            eligible: bool (B, L), the tokens that may be masked.

        Returns:
            bool (B, L), where units begin.
        """
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

    Args:
        tokenizer: `TextTokenizer`.
        tagger: function from a list of n words, str, to the ranges of the phrases in it. A range
            is a pair `(start, end)` with 0 <= start < end <= n. The ranges are in order and do not
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
        # A false column on either side keeps sequences from reaching into the next row.
        steps = np.diff(np.pad(eligible, ((0, 0), (1, 1))).astype("int8"), axis=1)
        rows, firsts = np.nonzero(steps == 1)
        ends = np.nonzero(steps == -1)[1]
        for row, first, end in zip(rows.tolist(), firsts.tolist(), ends.tolist(), strict=True):
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
