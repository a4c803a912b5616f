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

from keras_bert_suite.tokenizers.engines import GraphEngine, SegmentCache, drop_invalid
from keras_bert_suite.tokenizers.unicode_rules import CJK, PUNCTUATION, python_class, re2_class

#: The names of the characters, by their ids.
CHARACTERS = (
    "<pad>",
    *(f"<{byte:02x}>" for byte in range(256)),
    *("<S>", "</S>", "<bow>", "<eow>", "<after>"),
)
_BEGIN, _END, _AFTER = (CHARACTERS.index(name) for name in ("<bow>", "<eow>", "<after>"))


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

    def _tokenize_rows(self, texts):
        import tensorflow as tf

        texts = drop_invalid(texts)
        if self._split_punctuation:
            alone = re2_class(PUNCTUATION) + re2_class(CJK)
            texts = tf.strings.regex_replace(texts, f"([{alone}])", r" \1 ")
        # RE2 knows the white space of ASCII alone.
        texts = tf.strings.regex_replace(texts, r"[\s\v\x1c-\x1f\x{85}\pZ]+", " ")
        words = tf.strings.split(tf.strings.strip(texts), " ")
        words = tf.ragged.boolean_mask(words, tf.not_equal(words, ""))
        return words.with_values(self._make_rows(words.values))

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

    def _tokenize_rows_with_offsets(self, texts):
        raise ValueError(
            "A CharacterTokenizer has no offsets in a graph of TensorFlow. Tokenize Python strings."
        )
