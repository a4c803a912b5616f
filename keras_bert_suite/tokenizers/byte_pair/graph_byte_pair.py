"""The TensorFlow engine: byte-pair encoding as arithmetic over the bytes of a batch.

It needs no table and no state, only constants, so that any SavedModel can hold it.
"""

import numpy as np

from keras_bert_suite.tokenizers.byte_pair.byte_pair_vocabulary import byte_characters
from keras_bert_suite.tokenizers.byte_pair.canonical_composition import compose
from keras_bert_suite.tokenizers.byte_pair.character_classes import LETTERS, NUMBERS, SPACES
from keras_bert_suite.tokenizers.byte_pair.graph_composition import GraphComposition
from keras_bert_suite.tokenizers.byte_pair.graph_merges import GraphMerges
from keras_bert_suite.tokenizers.engines import GraphEngine, take_neighbour
from keras_bert_suite.tokenizers.unicode_rules import membership

OTHER, LETTER, NUMBER, BLANK, OUTSIDE = range(5)

#: Letters that are one word with the apostrophe before them, by the number of letters.
CONTRACTIONS = {1: ("s", "t", "m", "d"), 2: ("re", "ve", "ll")}


class GraphBytePair(GraphEngine):
    """String tensors to ids inside a TensorFlow graph. Arguments: see `CachedBytePair`.

    The words are found from the classes of characters. The merges are then made in all words at
    once, see `GraphMerges`.
    """

    def __init__(self, vocabulary, add_prefix_space, composed=False):
        import tensorflow as tf

        self._add_prefix_space = add_prefix_space
        self._composition = GraphComposition() if composed else None
        self._merges = GraphMerges(vocabulary)
        pieces = vocabulary.piece_bytes()
        with tf.init_scope():
            self._classes = tf.constant(_classify_characters())
            self._byte_ids = tf.constant(
                [vocabulary.ids.get(character, -1) for character in byte_characters()]
            )
            self._leading = tf.constant([len(p) - len(p.lstrip(b" ")) for p in pieces], tf.int64)
            self._trailing = tf.constant([len(p) - len(p.rstrip(b" ")) for p in pieces], tf.int64)

    def _tokenize_rows(self, texts):
        return self._tokenize_rows_with_offsets(texts)[0]

    def _tokenize_rows_with_offsets(self, texts):
        import tensorflow as tf

        nrows = tf.shape(texts, tf.int64)[0]
        row, *columns = self._tokenize_characters(*self._read_characters(texts))
        return tuple(
            tf.RaggedTensor.from_value_rowids(values, row, nrows, validate=False)
            for values in columns
        )

    def _tokenize_characters(self, characters, starts, ends, rows):
        """Characters (N,) to pieces: (row, id, start, end, whether it begins a word), each (M,)."""
        import tensorflow as tf

        words = self._number_words(characters, rows)
        byte, owner = _encode(characters)
        ids = tf.gather(self._byte_ids, byte)
        known = ids >= 0
        ids, byte, owner = (tf.boolean_mask(values, known) for values in (ids, byte, owner))
        ids, first, last = self._merges.merge(ids, byte, tf.gather(words, owner))
        word = tf.gather(words, tf.gather(owner, first))

        first_owner, last_owner = tf.gather(owner, first), tf.gather(owner, last)
        start, end = tf.gather(starts, first_owner), tf.gather(ends, last_owner)
        # Without the spaces at the ends of a token.
        start = tf.minimum(start + tf.gather(self._leading, ids), end)
        end = tf.maximum(end - tf.gather(self._trailing, ids), start)
        row = tf.gather(rows, first_owner)
        return row, ids, start, end, word != take_neighbour(word, row, -1, -1)

    def normalize_with_places(self, texts):
        import tensorflow as tf

        if self._composition is None:
            return super().normalize_with_places(texts)
        characters, *places, rows = self._composition.compose(*_decode(texts))
        count = tf.size(texts, tf.int64)

        def list_rows(values, rows):
            return tf.RaggedTensor.from_value_rowids(values, rows, count, validate=False)

        composed = tf.strings.unicode_encode(list_rows(characters, rows), "UTF-8")
        _, owner = _encode(characters)
        rows = tf.gather(rows, owner)
        return composed, *(list_rows(tf.gather(place, owner), rows) for place in places)

    def normalize_token(self, content):
        return content if self._composition is None else compose(content)

    def _read_characters(self, texts):
        """(code point, first byte, byte after the last, row) of each character of all rows."""
        characters = _decode(texts, self._add_prefix_space)
        return characters if self._composition is None else self._composition.compose(*characters)

    def _number_words(self, characters, rows):
        """int64 (N,), the number of the word that each character is in."""
        import tensorflow as tf

        classes = tf.gather(self._classes, characters)
        before = take_neighbour(classes, rows, -1, OUTSIDE)
        after = take_neighbour(classes, rows, 1, OUTSIDE)
        # The last of several spaces belongs to the text behind it. If no text follows, it belongs
        # to the spaces before it.
        begins = tf.where(
            classes == BLANK,
            (before != BLANK) | ((after != BLANK) & (after != OUTSIDE)),
            (classes != before) & (take_neighbour(characters, rows, -1, 0) != ord(" ")),
        )
        first, second = (take_neighbour(characters, rows, by, 0) for by in (1, 2))
        apostrophe = begins & (characters == ord("'"))
        of_two, of_three = (
            apostrophe & _is_one_of(CONTRACTIONS[length], (first, second)[:length])
            for length in (1, 2)
        )
        inside = take_neighbour(of_two | of_three, rows, -1, False)
        ended = take_neighbour(of_two, rows, -2, False) | take_neighbour(of_three, rows, -3, False)
        return tf.cumsum(tf.cast((begins & ~inside) | ended, tf.int64))


def _decode(texts, add_prefix_space=False):
    """(code point, first byte, byte after the last, row) of each character of all rows.

    Bytes that are not UTF-8 are left out. They belong to the character before them.
    """
    import tensorflow as tf

    ragged, starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", errors="ignore")
    if add_prefix_space:
        needs_space = tf.not_equal(ragged[:, :1], ord(" "))
        space = tf.ragged.boolean_mask(tf.zeros_like(ragged[:, :1]), needs_space)
        ragged = tf.concat([space + ord(" "), ragged], axis=1)
        # The added space begins one byte before the text, so its end is where the text begins.
        starts = tf.concat([tf.cast(space, tf.int64) - 1, starts], axis=1)
    rows, starts = ragged.value_rowids(), starts.values
    lengths = tf.gather(tf.strings.length(texts, unit="BYTE"), rows)
    ends = take_neighbour(starts, rows, 1, tf.cast(lengths, tf.int64))
    return ragged.values, starts, ends, rows


def _is_one_of(words, characters):
    """Whether characters that follow each other, one tensor for each, spell one of the words."""
    import tensorflow as tf

    spelled = [
        tf.reduce_all([c == ord(w) for c, w in zip(characters, word, strict=True)], axis=0)
        for word in words
    ]
    return tf.reduce_any(spelled, axis=0)


def _encode(characters):
    """Code points (N,) -> the bytes of their UTF-8, int32 (M,), and the character of each."""
    import tensorflow as tf

    length = 1 + sum(tf.cast(characters >= limit, tf.int64) for limit in (0x80, 0x800, 0x10000))
    owner = tf.repeat(tf.range(tf.size(characters, tf.int64)), length)
    place = tf.range(tf.size(owner, tf.int64)) - tf.gather(tf.cumsum(length) - length, owner)
    length = tf.gather(length, owner)
    shift = tf.cast(6 * (length - 1 - place), tf.int32)
    bits = tf.bitwise.right_shift(tf.gather(characters, owner), shift)
    mark = tf.gather(tf.constant([0, 0xC0, 0xE0, 0xF0]), length - 1)
    return tf.where(place == 0, bits + mark, bits % 64 + 0x80), owner


def _classify_characters():
    """int32 (0x110000,), the class of each code point."""
    classes = np.full(0x110000, OTHER, "int32")
    for table, kind in ((LETTERS, LETTER), (NUMBERS, NUMBER), (SPACES, BLANK)):
        classes[membership(table)] = kind
    return classes
