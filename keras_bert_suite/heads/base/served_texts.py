"""Places in texts, and windows of texts, in the graph of a SavedModel."""

#: The most tokens of windows that go through the model together.
MOST_TOKENS = 8192


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


def run_in_batches(run, lengths):
    """Runs a function on batches of windows, one batch after the other, and joins the results.

    So a long text takes no more memory than a batch of short texts. `run` makes of two int32
    scalars, the first window of a batch and the first one after it, a list of tensors. It is traced
    once. Windows have `lengths` tokens, int32 (N,).
    """
    import tensorflow as tf

    scalar = tf.TensorSpec([], tf.int32)
    run = tf.function(run, autograph=False).get_concrete_function(scalar, scalar)
    num_windows = tf.size(lengths)
    size = tf.maximum(MOST_TOKENS // tf.maximum(tf.reduce_max(lengths), 1), 1)
    # A request without texts has one batch without windows, so that the results have their shapes.
    num_batches = tf.maximum((num_windows + size - 1) // size, 1)
    results = [
        tf.TensorArray(spec.dtype, num_batches, element_shape=spec.shape, infer_shape=False)
        for spec in run.structured_outputs
    ]

    def run_batch(batch, results):
        begin = batch * size
        outputs = run(begin, tf.minimum(begin + size, num_windows))
        written = [array.write(batch, out) for array, out in zip(results, outputs, strict=True)]
        return batch + 1, written

    _, results = tf.while_loop(
        lambda batch, _: batch < num_batches,
        run_batch,
        (tf.constant(0), results),
        parallel_iterations=1,  # Batches that run at the same time would add up their memory.
    )
    return [array.concat() for array in results]
