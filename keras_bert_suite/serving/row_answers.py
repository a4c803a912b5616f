"""Rows of several texts in the graph of a SavedModel: endings, and windows of documents."""

from keras_bert_suite.serving.served_task import ServedTask


class ServedChoices(ServedTask):
    """A `MultipleChoice`: prompts (B,) and endings (B, K) become int32 (B, K, L)."""

    def pack(self, texts):
        import tensorflow as tf

        prompts, endings = texts
        shape = tf.shape(endings)
        packed = super().pack((tf.repeat(prompts, shape[1]), tf.reshape(endings, [-1])))
        # The number of rows is named, because a batch may have no row.
        return {
            name: tf.reshape(array, [shape[0], shape[1], tf.shape(array)[1]])
            for name, array in packed.items()
        }

    def answer_ids(self, packed):
        """The answers of the task, and `ranking` int32 (B, K), its endings, the best first."""
        import tensorflow as tf

        answers = super().answer_ids(packed)
        ranking = tf.argsort(answers["probabilities"], direction="DESCENDING", stable=True)
        return {**answers, "ranking": ranking}


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


class ServedDocuments(ServedTask):
    """A `DocumentClassifier`: documents (B,) become int32 (B, W, L), W windows of each."""

    def pack(self, texts):
        if self.packer is None:
            return super().pack(texts)  # The task says which preprocessor it wants.
        return self.task.data.pack_with(self.packer, texts)
