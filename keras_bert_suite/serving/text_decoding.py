"""Reads texts in the graph of a SavedModel as Python's decoder reads them."""


def decode_texts(texts):
    """Leaves out bytes that are not UTF-8. Only characters that Python's decoder keeps count."""
    import tensorflow as tf

    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


def count_characters(texts, ends):
    """Counts the characters before byte offsets `ends`, int32 (N,), of texts (N,): int32 (N,)."""
    import tensorflow as tf

    return tf.strings.length(tf.strings.substr(texts, tf.zeros_like(ends), ends), unit="UTF8_CHAR")
