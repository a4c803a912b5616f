"""The comparison of two texts in the graph of a SavedModel."""

from keras_bert_suite.serving.text_packing import make_packer

#: The names of the texts of a pair.
PAIR_NAMES = ("text_a", "text_b")


def make_similarity(task):
    """Makes the function that compares pairs of texts.

    Args:
        task: `TextEmbedder` under the TensorFlow backend.

    Returns:
        function from two string tensors (B,) to a dict of `similarity` float32 (B,), the cosines.
    """
    import tensorflow as tf

    pack = make_packer(task)

    def compare(first, second):
        vectors = task(pack((tf.concat([first, second], axis=0),)), training=False)
        first, second = tf.split(tf.math.l2_normalize(vectors, axis=-1), 2)
        return {"similarity": tf.reduce_sum(first * second, axis=-1)}

    return compare
