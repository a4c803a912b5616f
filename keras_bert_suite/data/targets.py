"""Checks the targets of a regression."""

import numpy as np

from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def encode_targets(labels, num_targets):
    """Turns the targets of a regression into a matrix.

    >>> encode_targets([4.5, 0], 1).tolist()
    [[4.5], [0.0]]

    Args:
        labels: N numbers, or N rows of T numbers, as a list, an array or a TensorFlow tensor.
        num_targets: int T.

    Returns:
        float32 (N, T), a NumPy array, or a tensor for a tensor.

    Raises:
        ValueError: if there are not T numbers for each row, or a number is not finite, naming the
            number and its row. In a TensorFlow graph, a number that is not finite raises
            `tf.errors.InvalidArgumentError`.
    """
    if is_tf_tensor(labels):
        return _encode_tensor(labels, num_targets)
    labels = np.asarray(labels)
    if labels.dtype == object:
        labels = _read_numbers(labels)
    if labels.dtype.kind not in "biuf":
        raise ValueError(
            f"The targets of a regression must be numbers, got {str(labels[0])[:40]!r} "
            f"({labels.dtype}) at row 0. Turn them into numbers, or build a classifier."
        )
    if labels.ndim == 1 and (num_targets == 1 or not len(labels)):
        labels = labels.reshape(-1, num_targets)
    if labels.ndim != 2 or labels.shape[1] != num_targets:
        raise ValueError(_wrong_shape(labels.shape, num_targets))
    wrong = np.argwhere(~np.isfinite(labels))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"The targets of a regression must be finite numbers, got {labels[row, column]} at row "
            f"{row}. Correct the row, or leave it out."
        )
    return labels.astype("float32")


def _read_numbers(labels):
    """The numbers of an object array."""
    for row, label in enumerate(labels):
        if not isinstance(label, (int, float, np.number)):
            raise ValueError(
                f"The targets of a regression must be numbers, got {str(label)[:40]!r} "
                f"({type(label).__name__}) at row {row}. Turn them into numbers, or build a "
                "classifier."
            )
    return labels.astype("float64")


def _encode_tensor(labels, num_targets):
    import tensorflow as tf

    if labels.dtype == tf.string:
        raise ValueError(
            "The targets of a regression must be numbers, got a tensor of strings. Turn them into "
            "numbers with tf.strings.to_number."
        )
    if labels.shape.rank == 1 and num_targets == 1:
        labels = labels[:, None]
    if labels.shape.rank != 2 or labels.shape[1] not in (None, num_targets):
        raise ValueError(_wrong_shape(labels.shape, num_targets))
    labels = tf.cast(labels, "float32")
    message = "The targets of a regression must be finite numbers."
    with tf.control_dependencies([tf.debugging.assert_all_finite(labels, message)]):
        return tf.identity(labels)


def _wrong_shape(shape, num_targets):
    return (
        f"The regression has {num_targets} targets, so its labels must have the shape "
        f"(N, {num_targets}){' or (N,)' if num_targets == 1 else ''}, got {tuple(shape)}. Correct "
        "the labels, or build the task with another `num_classes`."
    )
