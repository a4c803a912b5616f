"""Texts and labels in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask


class ServedEntailments(ServedTask):
    """A `ZeroShotClassifier`. A request has texts, string (B,), and labels, string (B, K).

    `own_labels` takes texts alone, which have the labels of the task.
    """

    def answer_texts(self, texts):
        """`probabilities` float32 (B, K), and the answer.

        It is `label_ids` int32 (B,) and `labels` string (B,); or for sets `is_label` bool (B, K).
        """
        import tensorflow as tf

        answers = super().answer_texts(texts)
        if "label_ids" not in answers:
            return answers
        names = tf.gather(texts[1], answers["label_ids"], batch_dims=1)
        return {**answers, "labels": names}

    def more_signatures(self):
        return {"own_labels": (self.answer_with_own_labels, {self.task.input_names[0]: 1})}

    def answer_with_own_labels(self, texts):
        """As `answer_texts`, for a tuple of one string tensor (B,)."""
        import tensorflow as tf

        names = tf.constant(self.task.label_names)[None]
        return self.answer_texts((*texts, tf.tile(names, [tf.size(texts[0]), 1])))
