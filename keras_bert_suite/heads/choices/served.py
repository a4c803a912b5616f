"""Endings in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.served_rows import order_candidates, pair_up


class ServedChoices(ServedTask):
    """A `MultipleChoice`: prompts (B,) and endings (B, K) become int32 (B, K, L)."""

    def pack(self, texts):
        import tensorflow as tf

        shape = tf.shape(texts[1])
        packed = super().pack(pair_up(*texts))
        # The number of rows is named, because a batch may have no row.
        return {
            name: tf.reshape(array, [shape[0], shape[1], tf.shape(array)[1]])
            for name, array in packed.items()
        }

    def answer_ids(self, packed):
        """The answers of the task, and `ranking` int32 (B, K), its endings, the best first."""
        answers = super().answer_ids(packed)
        return {**answers, "ranking": order_candidates(answers["probabilities"])["order"]}
