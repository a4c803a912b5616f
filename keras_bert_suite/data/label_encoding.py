"""Labels as class ids, checked."""

import numpy as np

from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def encode_labels(labels, label_names):
    """Turns label names into class ids, and checks that ids are in range.

    >>> encode_labels(["no", "yes", "no"], ["no", "yes"])
    array([0, 1, 0], dtype=int32)

    Args:
        labels: B label names or B class ids, as a list, an array or a TensorFlow
            tensor; or an array of more dimensions (one-hot, soft), which is passed
            through.
        label_names: list of C names, in the order of the classes.

    Returns:
        int32 (B,), a NumPy array, or a tensor for a tensor.

    Raises:
        ValueError: naming a label that is not one of the names or not in [0, C), and
            its row. In a TensorFlow graph, `tf.errors.InvalidArgumentError`.
    """
    if is_tf_tensor(labels):
        return _encode_tensor(labels, label_names)
    if hasattr(labels, "detach"):
        labels = labels.detach().cpu()
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        return labels
    if labels.dtype.kind in "OUST":
        return _encode_names(labels, label_names)
    ids = np.nan_to_num(labels, nan=-1).astype("int32")
    wrong = np.flatnonzero((ids != labels) | (ids < 0) | (ids >= len(label_names)))
    if len(wrong):
        raise ValueError(
            f"Label {labels[wrong[0]]} at row {wrong[0]} is not a whole number in "
            f"[0, {len(label_names)}): the classifier has {len(label_names)} classes. Correct the "
            "label, or build the classifier with a larger `num_classes`."
        )
    return ids


def _encode_names(labels, label_names):
    id_of = {name: i for i, name in enumerate(label_names)}
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in labels]
    for row, name in enumerate(names):
        if name not in id_of:
            raise ValueError(
                f"Label {name!r} at row {row} is not one of the classifier's labels, "
                f"{_list_names(label_names)}. Correct it, or build the classifier with "
                "`label_names` that include it."
            )
    return np.array([id_of[name] for name in names], dtype="int32")


def _encode_tensor(labels, label_names):
    import tensorflow as tf

    if labels.shape.rank == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape.rank is not None and labels.shape.rank > 1:
        return labels
    num_classes = len(label_names)
    if labels.dtype == tf.string:
        matches = tf.equal(labels[..., None], tf.constant(list(label_names)))
        known = tf.reduce_any(matches, axis=-1)
        wanted = f"one of {_list_names(label_names)}"
        ids = tf.argmax(matches, axis=-1, output_type="int32")
    else:
        ids = tf.cast(labels, "int32")
        known = (ids >= 0) & (ids < num_classes) & (tf.cast(ids, labels.dtype) == labels)
        wanted = f"a whole number in [0, {num_classes})"
    message = [f"A label is not {wanted}:", tf.boolean_mask(labels, ~known)]
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(known), message)]):
        return tf.identity(ids)


def _list_names(label_names):
    """The names for a message, the first twenty."""
    names = list(map(repr, label_names[:20]))
    return ", ".join(names + ["..."] * (len(label_names) > 20))
