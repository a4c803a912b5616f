"""The comparison of two texts in the graph of a SavedModel."""

from keras_bert_suite.serving.served_task import ServedTask

#: The names of the texts of a pair.
PAIR_NAMES = ("text_a", "text_b")


class ServedVectors(ServedTask):
    """A `TextEmbedder`, with the signature `similarity`."""

    def more_signatures(self):
        return {"similarity": (self.compare, PAIR_NAMES)}

    def compare(self, texts):
        """Compares pairs of texts.

        Args:
            texts: tuple of two string tensors (B,).

        Returns:
            dict of `similarity` float32 (B,), the cosines.
        """
        import tensorflow as tf

        vectors = self.task(self.pack((tf.concat(texts, axis=0),)), training=False)
        first, second = tf.split(tf.math.l2_normalize(vectors, axis=-1), 2)
        return {"similarity": tf.reduce_sum(first * second, axis=-1)}
