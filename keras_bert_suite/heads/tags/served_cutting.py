"""Cuts texts into words in a graph of TensorFlow, as `WordCutting.cut` does in Python."""

import dataclasses
from typing import Any

import numpy as np

from keras_bert_suite.heads.tags.word_parts import (
    ATTACHED,
    BLANK,
    KIND_NAMES,
    LETTER,
    MARK,
    NUMBER,
    SIGN,
    character_kinds,
)
from keras_bert_suite.tokenizers.engines import look_up_code_points, take_neighbour


@dataclasses.dataclass(frozen=True)
class Characters:
    """The T characters of texts that are not attached, one text after the other, as tensors.

    Attributes:
        codes: int32 (T,), the code points.
        kinds: int32 (T,), see `character_kinds`.
        rows: int64 (T,), the text of each character.
        starts, ends: int32 (T,), in bytes; attached characters belong to the one before them.
    """

    codes: Any
    kinds: Any
    rows: Any
    starts: Any
    ends: Any

    def neighbours(self, values, by, filler):
        """The value `by` places further in the same text."""
        return take_neighbour(values, self.rows, by, filler)


def cut_texts_into_words(cutting, texts):
    """(rows, starts, ends) of the words of texts, string (B,) from `drop_invalid`; int32 (W,).

    Starts and ends count bytes.
    """
    import tensorflow as tf

    characters = _read(texts)
    cuts = _find_cuts(cutting, texts, characters)
    begins = (characters.kinds != BLANK) & cuts
    after = characters.neighbours(tf.cast(begins, tf.int32), 1, 1)
    after_kind = characters.neighbours(characters.kinds, 1, BLANK)
    finishes = (characters.kinds != BLANK) & ((after == 1) | (after_kind == BLANK))
    return (
        tf.cast(tf.boolean_mask(characters.rows, begins), tf.int32),
        tf.boolean_mask(characters.starts, begins),
        tf.boolean_mask(characters.ends, finishes),
    )


def _read(texts):
    import tensorflow as tf

    codes, starts = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    kinds = look_up_code_points(character_kinds().astype("int32"), codes.values)
    kept = kinds != ATTACHED
    rows = tf.boolean_mask(codes.value_rowids(), kept)
    starts = tf.cast(tf.boolean_mask(starts.values, kept), tf.int32)
    lengths = tf.gather(tf.strings.length(texts), rows)
    return Characters(
        tf.boolean_mask(codes.values, kept),
        tf.boolean_mask(kinds, kept),
        rows,
        starts,
        take_neighbour(starts, rows, 1, lengths),
    )


def _find_cuts(cutting, texts, characters):
    """bool (T,), whether there is a cut before each character."""
    import tensorflow as tf

    alone = tf.gather(tf.constant(cutting.alone), characters.kinds)
    is_blank = characters.kinds == BLANK
    near = characters.neighbours(is_blank, -1, True)
    cuts = alone | characters.neighbours(alone, -1, True) | near | is_blank
    if not cutting.rules and not cutting.negation_apart:
        return cuts
    negations = tf.zeros_like(cuts)
    if cutting.negation_apart:
        negations = _find_negations(characters)
    for runs in (False, True):
        if cutting.rules:
            begins = _find_segments(characters, alone, runs, negations)
            cuts = _apply_rules(cutting.rules, texts, characters, begins, cuts)
    return cuts | negations | near


def _find_negations(characters):
    """bool (T,), where the n of a `n't` is that ends a word."""
    codes, look = characters.codes, characters.neighbours
    is_letter = characters.kinds == LETTER
    goes_on = is_letter | (characters.kinds == NUMBER)
    first, second, third = codes, look(codes, 1, 0), look(codes, 2, 0)
    found = _is_in(first, "nN") & _is_in(second, "'’") & _is_in(third, "tT")
    return found & look(is_letter, -1, False) & ~look(goes_on, 3, False)


def _is_in(codes, characters):
    import tensorflow as tf

    return tf.reduce_any([codes == ord(c) for c in characters], axis=0)


def _find_segments(characters, alone, runs, negations):
    """bool (T,), where the parts of `list_segments` begin, and each blank."""
    is_mark = (characters.kinds == MARK) | (characters.kinds == SIGN)
    look, is_blank = characters.neighbours, characters.kinds == BLANK
    begins = (is_mark != look(is_mark, -1, False)) | is_blank | look(is_blank, -1, True)
    begins |= negations | (~is_mark & (alone | look(alone, -1, True)))
    if not runs:
        begins |= is_mark & (characters.codes != look(characters.codes, -1, 0))
    return begins


def _apply_rules(rules, texts, characters, begins, cuts):
    """The cuts, bool (T,), with the cuts of the rules around punctuation."""
    import tensorflow as tf

    kinds, codes, rows = characters.kinds, characters.codes, characters.rows
    part_of = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    first = tf.cast(tf.where(begins)[:, 0], tf.int32)
    written = tf.strings.unicode_encode(
        tf.RaggedTensor.from_value_rowids(codes, part_of, validate=False), "UTF-8"
    )
    first_kinds = tf.gather(kinds, first)
    is_mark = (first_kinds == MARK) | (first_kinds == SIGN)
    is_word = ~is_mark & (first_kinds != BLANK)
    part_rows = tf.gather(rows, first)
    count = tf.size(first)
    last = tf.concat([first[1:], [tf.size(codes)]], axis=0)[:count] - 1
    names = tf.constant([KIND_NAMES.get(kind, "") for kind in range(7)])
    texts_of = tf.where(is_word, written, "")

    def beside(values, by):
        return take_neighbour(values, part_rows, by, "")

    left = beside(texts_of, -1)
    right = beside(texts_of, 1)
    left_kind = beside(tf.where(is_word, tf.gather(names, tf.gather(kinds, last)), ""), -1)
    right_kind = beside(tf.where(is_word, tf.gather(names, first_kinds), ""), 1)
    look_up = _make_table(rules)
    ways = tf.zeros_like(written)
    # From the most general rule to the most special.
    for before in (left_kind, left):
        for after in (right_kind, right):
            found = look_up(tf.strings.join([before, " ", written, " ", after]))
            ways = tf.where(is_mark & (found != ""), found, ways)
    has_way = ways != ""
    boundaries = tf.strings.bytes_split(tf.boolean_mask(ways, has_way))
    places = tf.gather(tf.boolean_mask(first, has_way), boundaries.value_rowids())
    begin = tf.gather(boundaries.row_starts(), boundaries.value_rowids())
    places += tf.cast(tf.range(tf.size(boundaries.values, tf.int64)) - begin, tf.int32)
    # The boundary behind the last character is no place.
    cuts = tf.pad(cuts, [[0, 1]])
    return tf.tensor_scatter_nd_update(cuts, places[:, None], boundaries.values == "|")[:-1]


def _make_table(rules):
    """function(keys), strings (N,), that finds the values of a dict; "" for other keys.

    A SavedModel would have to own a table of TensorFlow. This one is of constants.
    """
    import tensorflow as tf

    def find_hash(keys):
        return tf.strings.to_hash_bucket_fast(keys, 2**63 - 1)

    with tf.init_scope():
        hashes = find_hash(tf.constant(list(rules))).numpy()
    order = np.argsort(hashes)
    keys, values = (np.array(list(column), object)[order] for column in (rules, rules.values()))
    hashes, keys, values = map(tf.constant, (hashes[order], keys, values))

    def look_up(wanted):
        place = tf.searchsorted(hashes, find_hash(wanted))
        place = tf.minimum(place, len(rules) - 1)
        return tf.where(tf.gather(keys, place) == wanted, tf.gather(values, place), "")

    return look_up
