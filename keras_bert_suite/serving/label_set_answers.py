"""The answers for sets of labels in the graph of a SavedModel."""


def list_labels(is_label, label_names):
    """Lists the names of the labels of each row.

    Args:
        is_label: bool (B, C), a tensor of TensorFlow.
        label_names: list of C str.

    Returns:
        dict of `labels` string (B, E) for the E labels of the row with the most labels, filled up
        with "", and `num_labels` int32 (B,).
    """
    import tensorflow as tf

    rows, labels = tf.unstack(tf.where(is_label), axis=1)
    num_rows = tf.shape(is_label, out_type=tf.int64)[0]
    names = tf.gather(tf.constant(list(label_names)), labels)
    ragged = tf.RaggedTensor.from_value_rowids(names, rows, nrows=num_rows)
    return {
        "labels": ragged.to_tensor(""),
        "num_labels": tf.reduce_sum(tf.cast(is_label, tf.int32), axis=1),
    }
