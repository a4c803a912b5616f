"""Runs the windows of texts in batches of a bounded size, in the graph of a SavedModel."""

#: The most tokens of windows that go through the model together.
MOST_TOKENS = 8192


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
