"""The words of texts in the graph of a SavedModel, and the entities made of words."""


def count_characters(texts, rows, ends):
    """Counts the characters before places in texts, int32 (N,), from `drop_invalid`.

    `rows`, int32 (N,), has the text of each place, and `ends` the places, in bytes.
    """
    import tensorflow as tf

    # A copy of the text for each place would take the square of the memory.
    _, begins = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    text_starts = _find_text_starts(texts)
    begins_of_all = tf.cast(begins.flat_values, tf.int32)
    begins_of_all += tf.gather(text_starts, begins.value_rowids())
    counts = tf.searchsorted(begins_of_all, tf.gather(text_starts, rows) + ends)
    return counts - tf.cast(tf.gather(begins.row_starts(), rows), tf.int32)


def cut_texts(texts, rows, starts, ends):
    """Cuts parts out of texts: string (N,). `rows` has their texts; places are in bytes."""
    import tensorflow as tf

    # As in `count_characters`, no text is copied for its parts.
    begins = tf.gather(_find_text_starts(texts), rows) + starts
    return tf.strings.substr(tf.strings.reduce_join(texts), begins, ends - starts)


def _find_text_starts(texts):
    """int32 (B,), the bytes before each text, if the texts stand one after the other."""
    import tensorflow as tf

    return tf.cumsum(tf.strings.length(texts), exclusive=True)


def make_segment(ragged):
    """Ragged ids (B, None) as a segment of `pack_segments`: ids, starts and lengths."""
    import tensorflow as tf

    lengths = tf.cast(ragged.row_lengths(), tf.int32)
    return ragged.flat_values, tf.cumsum(lengths) - lengths, lengths
