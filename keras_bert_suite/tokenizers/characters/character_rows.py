"""Words as rows of the numbers of their characters, in NumPy and in graphs of TensorFlow.

| id | character |
| --- | --- |
| 0 | nothing, in all of a row of padding |
| 1 to 256 | a byte of UTF-8, plus 1 |
| 257, 258 | <S> and </S>, in the rows of the special tokens |
| 259, 260 | the beginning and the end of a word |
| 261 | after the end of a word |
"""

import functools
import re

import numpy as np

from keras_bert_suite.tokenizers.engines import (
    GraphEngine,
    SegmentCache,
    drop_invalid,
    look_up_code_points,
    place_in,
    take_neighbour,
)
from keras_bert_suite.tokenizers.unicode_rules import CJK, PUNCTUATION, find_lone, python_class

#: The names of the characters, by their ids.
CHARACTERS = (
    "<pad>",
    *(f"<{byte:02x}>" for byte in range(256)),
    *("<S>", "</S>", "<bow>", "<eow>", "<after>"),
)
_BEGIN, _END, _AFTER = (CHARACTERS.index(name) for name in ("<bow>", "<eow>", "<after>"))
#: What code points are in a text: between words, part of a word, or a word.
_BLANK, _LETTER, _ALONE = range(3)


class CharacterVocabulary:
    """The characters, as `TextTokenizer` takes a vocabulary. All tokenizers have the same."""

    tokens = CHARACTERS
    ids = {name: i for i, name in enumerate(CHARACTERS)}
    source = "table of characters"

    def files(self, names):
        """dict of the files, of which there are none."""
        return {}


def make_row(ids, max_characters):
    """int32 (W,), the row of a word of some characters. Characters without a place are left out."""
    ids = [_BEGIN, *ids[: max_characters - 2], _END]
    return np.array(ids + [_AFTER] * (max_characters - len(ids)), "int32")


def special_rows(ids, max_characters):
    """int32 (3, W): the rows of the tokens before and after a text, `ids`, and of padding."""
    start, end = (make_row([id], max_characters) for id in ids)
    return np.stack([start, end, np.zeros_like(start)])


@functools.cache
def _word_pattern(split_punctuation):
    """The pattern of words. Lone surrogates are no text."""
    none = r"\s\ud800-\udfff"
    if not split_punctuation:
        return re.compile(f"[^{none}]+")
    alone = python_class(PUNCTUATION) + python_class(CJK)
    return re.compile(f"[^{none}{alone}]+|[{alone}]")


@functools.cache
def _character_kinds(split_punctuation):
    """int32 (0x110000,), the kinds of the code points, as `_word_pattern` has them."""
    kinds = np.full(0x110000, _LETTER, "int32")
    if split_punctuation:
        kinds[find_lone()] = _ALONE
    kinds[[code for code in range(0x10000) if chr(code).isspace()]] = _BLANK
    return kinds


class EagerCharacters:
    """The engine for texts of Python. See `CharacterTokenizer` for its arguments."""

    def __init__(self, max_characters, split_punctuation):
        self._pattern = _word_pattern(split_punctuation)
        self._rows = SegmentCache(self._make_row)
        self._max_characters = max_characters

    def _make_row(self, word):
        return make_row([byte + 1 for byte in word.encode("utf-8", "ignore")], self._max_characters)

    def tokenize(self, text):
        """str -> list of lists of int."""
        return [self._rows[word].tolist() for word in self._pattern.findall(text)]

    def tokenize_flat(self, texts):
        """n str -> (int32 (T, W), the rows of all words; int64 (n,), the words of each text)."""
        return self.tokenize_words(list(map(self._pattern.findall, texts)))

    def tokenize_words(self, rows):
        """n lists of words -> as `tokenize_flat`."""
        found = [self._rows[word] for row in rows for word in row]
        ids = np.stack([np.zeros(self._max_characters, "int32"), *found])[1:]
        return ids, np.array(list(map(len, rows)), "int64")

    def tokenize_with_offsets(self, text):
        """str -> (list of lists of int, list of (start, end), list of True)."""
        words = [(match.group(), match.span()) for match in self._pattern.finditer(text)]
        return (
            [self._rows[word].tolist() for word, _ in words],
            [span for _, span in words],
            [True] * len(words),
        )


class GraphCharacters(GraphEngine):
    """The engine for graphs of TensorFlow."""

    def __init__(self, max_characters, split_punctuation):
        self._max_characters = max_characters
        self._split_punctuation = split_punctuation

    def tokenize_words(self, words):
        """Words (n,) -> ragged (n, None): a token for each, and none for an empty word."""
        import tensorflow as tf

        is_word = tf.strings.length(words) > 0
        rows = self._make_rows(tf.boolean_mask(words, is_word))
        return tf.RaggedTensor.from_row_lengths(rows, tf.cast(is_word, tf.int64), validate=False)

    def _tokenize_rows(self, texts):
        return self._tokenize_rows_with_offsets(texts)[0]

    def _tokenize_rows_with_offsets(self, texts):
        import tensorflow as tf

        clean = drop_invalid(texts)
        codes, starts = tf.strings.unicode_decode_with_offsets(clean, "UTF-8")
        rows, starts, sizes = codes.value_rowids(), starts.values, tf.strings.length(clean)
        ends = take_neighbour(starts, rows, 1, tf.cast(tf.gather(sizes, rows), tf.int64))
        kinds = look_up_code_points(_character_kinds(self._split_punctuation), codes.values)
        is_word, is_alone = kinds != _BLANK, kinds == _ALONE
        begins = is_word & (is_alone | (take_neighbour(kinds, rows, -1, _BLANK) != _LETTER))
        finishes = is_word & (is_alone | (take_neighbour(kinds, rows, 1, _BLANK) != _LETTER))
        rows, starts, ends = (
            tf.boolean_mask(values, where)
            for values, where in ((rows, begins), (starts, begins), (ends, finishes))
        )
        # No text is copied for its words.
        first = tf.cast(tf.gather(tf.cumsum(sizes, exclusive=True), rows), tf.int64) + starts
        words = tf.strings.substr(tf.strings.reduce_join(clean), first, ends - starts)
        number = tf.size(clean, tf.int64)
        ids, starts, ends, word_starts = (
            tf.RaggedTensor.from_value_rowids(values, rows, nrows=number, validate=False)
            for values in (self._make_rows(words), starts, ends, tf.ones_like(starts, tf.bool))
        )
        starts, ends = (place_in(texts, clean, offsets) for offsets in (starts, ends))
        return ids, starts, ends, word_starts

    def _make_rows(self, words):
        """Words (T,) -> int32 (T, W)."""
        import tensorflow as tf

        size = self._max_characters - 2
        bytes_ = tf.io.decode_raw(tf.strings.substr(words, 0, size), tf.uint8, fixed_length=size)
        bytes_ = tf.pad(tf.cast(bytes_, tf.int32) + 1, [[0, 0], [1, 1]])
        place = tf.range(self._max_characters)[None]
        last = tf.minimum(tf.strings.length(words), size)[:, None] + 1
        rows = tf.where(place < last, bytes_, tf.where(place == last, _END, _AFTER))
        return tf.where(place == 0, _BEGIN, rows)
