"""The rules that the models of tensorflow_text's ops cannot express, as TensorFlow ops."""


def find_unknown_words(texts, starts, ends, max_characters):
    """Finds the words that have more than `max_characters` characters.

    `starts` and `ends` of the words are ragged (B, None), in bytes of their row. The result is
    `(starts, ends)` of these words, int64, in bytes of the joined rows.
    """
    import tensorflow as tf

    content = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    begins_character = tf.cast(tf.bitwise.bitwise_and(content, 0xC0) != 0x80, tf.int64)
    characters_before = tf.concat([[0], tf.cumsum(begins_character)], axis=0)
    start, end = place_in_batch(texts, starts), place_in_batch(texts, ends)
    length = tf.gather(characters_before, end) - tf.gather(characters_before, start)
    too_long = length > max_characters
    return tf.boolean_mask(start, too_long), tf.boolean_mask(end, too_long)


def merge_unknown_words(texts, pieces, unknown_words, unknown_id):
    """Makes all tokens of each unknown word one unknown token.

    `pieces` and the result are `(ids, starts, ends)`, ragged (B, None), in bytes of their row.
    `unknown_words` is the result of `find_unknown_words`.
    """
    import tensorflow as tf

    ids, starts, ends = pieces
    # A word before all others, so that the search always finds a word.
    word_start, word_end = (tf.concat([[-1], places], axis=0) for places in unknown_words)
    start, end = place_in_batch(texts, starts), place_in_batch(texts, ends)
    word = tf.searchsorted(word_start, start, side="right") - 1
    is_unknown = start < tf.gather(word_end, word)
    is_first = start == tf.gather(word_start, word)
    is_kept = tf.logical_or(tf.logical_not(is_unknown), is_first)
    extension = tf.where(is_unknown, tf.gather(word_end, word) - end, 0)
    kept_before = tf.concat([[0], tf.cumsum(tf.cast(is_kept, tf.int64))], axis=0)
    row_splits = tf.gather(kept_before, ids.row_splits)
    return tuple(
        tf.RaggedTensor.from_row_splits(tf.boolean_mask(v, is_kept), row_splits, validate=False)
        for v in (
            tf.where(is_unknown, unknown_id, ids.flat_values),
            starts.flat_values,
            ends.flat_values + tf.cast(extension, ends.dtype),
        )
    )


def place_in_batch(texts, offsets):
    """Offsets in bytes of each row, ragged (B, None), to offsets in the joined rows, int64."""
    import tensorflow as tf

    row_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
    return tf.gather(row_starts, offsets.value_rowids()) + tf.cast(offsets.flat_values, tf.int64)
