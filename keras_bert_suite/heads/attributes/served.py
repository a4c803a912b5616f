"""Attributes in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask


class ServedAttributes(ServedTask):
    """An `AttributeClassifier`: outputs with the names of its attributes."""

    def answer_ids(self, packed):
        """Of each attribute: its name, string (B,), and `NAME_probabilities`, float32 (B, C)."""
        import tensorflow as tf

        answers, found = super().answer_ids(packed), {}
        for name, part in self.task.answers.split(answers["probabilities"]).items():
            labels = tf.constant(self.task.attributes[name])
            found[name] = tf.gather(labels, tf.argmax(part, axis=-1))
            found[f"{name}_probabilities"] = part
        return found
