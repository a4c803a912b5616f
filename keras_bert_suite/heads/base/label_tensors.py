"""Encodes labels in TensorFlow graphs."""

import numpy as np


def encode_tensor(encode, labels, dtype, shape):
    """Encodes a tensor of labels by `encode`, the function that encodes labels in memory.

    A ragged tensor becomes an object array of arrays. The result has this `dtype` and `shape`. A
    size may be None. If `encode` raises an error, the running graph raises
    `tf.errors.InvalidArgumentError` with its message.
    """
    import tensorflow as tf

    if isinstance(labels, tf.RaggedTensor):
        inputs = [labels.flat_values, labels.row_splits]
        encoded = tf.numpy_function(lambda *parts: encode(_split_rows(*parts)), inputs, dtype)
    else:
        encoded = tf.numpy_function(encode, [labels], dtype)
    return tf.ensure_shape(encoded, shape)


def _split_rows(values, bounds):
    rows = np.empty(len(bounds) - 1, dtype=object)
    for number in range(len(rows)):  # A batch may have no row.
        rows[number] = values[bounds[number] : bounds[number + 1]]
    return rows
