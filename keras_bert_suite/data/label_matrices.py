"""Checks matrices of labels, which hold a number in [0, 1] for each class of each row."""

import numpy as np


def check_matrix(matrix, describe):
    """Checks that all numbers of an array (N, C) are in [0, 1].

    Args:
        matrix: array of numbers (N, C).
        describe: function (number, row, column) -> message, for the first number out of [0, 1].

    Returns:
        float32 (N, C).

    Raises:
        ValueError: with the message of `describe`, if a number is out of [0, 1].
    """
    wrong = np.argwhere(~((matrix >= 0) & (matrix <= 1)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(describe(matrix[row, column], row, column))
    return matrix.astype("float32")


def check_matrix_tensor(matrix, num_classes):
    """Does the same as `check_matrix` for a TensorFlow tensor. Its width may be unknown.

    Raises:
        tf.errors.InvalidArgumentError: when the graph runs, if a number is not in [0, 1], or the
            width is not `num_classes`.
    """
    import tensorflow as tf

    matrix = tf.cast(matrix, "float32")
    known = tf.reduce_all((matrix >= 0) & (matrix <= 1)) & (tf.shape(matrix)[1] == num_classes)
    message = [f"Labels must be {num_classes} numbers in [0, 1], got the matrix", matrix]
    with tf.control_dependencies([tf.debugging.Assert(known, message)]):
        return tf.ensure_shape(tf.identity(matrix), (None, num_classes))


def list_names(label_names):
    """The first twenty names, as text for a message."""
    names = list(map(repr, label_names[:20]))
    return ", ".join(names + ["..."] * (len(label_names) > 20))
