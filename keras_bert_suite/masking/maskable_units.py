"""Finds the tokens that are masked together: tokens of a word, characters of a Chinese word.

`phrase_units` joins words further, to phrases.

The units of a batch are one boolean array (B, L), true where a unit begins. Special tokens and
padding are never masked. Each such token is a unit of its own, so that no unit reaches across it.
"""

import numpy as np

from keras_bert_suite.tokenizers.unicode_rules import CJK, membership


class MaskVocabulary:
    """The properties of a vocabulary that masking needs, as tables over its ids.

    Args:
        tokenizer: tokenizer whose vocabulary has the mask token.
        ordinary_only: bool, whether to leave special tokens and unused tokens out of `random_ids`.

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

    Args:
        vocabulary: `MaskVocabulary`.
        word_segmenter: function as for `join_characters`, or None.
        phrases: `LexiconPhrases` or `TaggedPhrases`, or None.
    """

    def __init__(self, vocabulary, word_segmenter=None, phrases=None):
        self._vocabulary = vocabulary
        self._word_segmenter = word_segmenter
        self._phrases = phrases

    def find(self, token_ids, eligible):
        """Finds where words and units begin. A unit is a word, or all words of a phrase.

        Args:
            token_ids: int (B, L).
            eligible: bool (B, L), the tokens that may be masked.

        Returns:
            words, units: bool (B, L).
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
    """Finds where words begin. A word is a token and the tokens after it that continue it.

    If truncation has cut off the beginning of a word, its first remaining token begins a word.

    Args:
        eligible: bool (B, L), the tokens that may be masked.
        continues: bool (B, L), the tokens that continue a word.

    Returns:
        bool (B, L).
    """
    begins = np.ones_like(eligible)
    begins[:, 1:] = ~(continues[:, 1:] & eligible[:, 1:] & eligible[:, :-1])
    return begins


def find_first_columns(begins):
    """int64 (B, L), for each token the column where its unit begins.

    Args:
        begins: bool (B, L), where units begin; true in the first column.
    """
    columns = np.arange(begins.shape[1])
    return np.maximum.accumulate(np.where(begins, columns, 0), axis=1)


def join_characters(begins, token_ids, cjk, tokens, word_segmenter):
    """Makes one unit of the characters of a Chinese word.

    Args:
        begins: bool (B, L), where units begin now.
        token_ids: int (B, L).
        cjk: bool (B, L), the tokens that are one CJK character and may be masked.
        tokens: sequence of V str, the vocabulary.
        word_segmenter: function that splits a str into a list of words, and leaves nothing out.

    Returns:
        bool (B, L). In sequences of `cjk` tokens a unit begins where `word_segmenter` begins a
        word. Everywhere else it is `begins`.

    Raises:
        ValueError: if the words of the segmenter do not join to the text that it was given.
    """
    begins = begins & ~cjk
    # A false column on either side keeps sequences from reaching into the next row.
    steps = np.diff(np.pad(cjk, ((0, 0), (1, 1))).astype("int8"), axis=1)
    rows, firsts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    for row, first, end in zip(rows.tolist(), firsts.tolist(), ends.tolist(), strict=True):
        text = "".join([tokens[i] for i in token_ids[row, first:end].tolist()])
        words = word_segmenter(text)
        if "".join(words) != text:
            raise ValueError(
                f"word_segmenter must split {text!r} into words that join to it, got {words!r}."
            )
        lengths = np.array([len(word) for word in words])
        begins[row, first + np.cumsum(lengths) - lengths] = True
    return begins
