"""Rows of several texts in the graph of a SavedModel: endings, and windows of documents."""


def pair_up(texts, lists):
    """Two string tensors (B K,): each of the texts (B,) beside each text of its list (B, K)."""
    import tensorflow as tf

    return tf.repeat(texts, tf.shape(lists)[1]), tf.reshape(lists, [-1])


def order_candidates(scores):
    """`order` int32 (B, K), the positions of scores (B, K), the highest first, and `scores`."""
    import tensorflow as tf

    # Equal candidates stay in their order.
    order = tf.argsort(scores, direction="DESCENDING", stable=True)
    return {"order": order, "scores": tf.gather(scores, order, batch_dims=1)}
