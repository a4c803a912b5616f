"""Rows of several texts in the graph of a SavedModel: endings, and windows of documents."""

from keras_bert_suite.serving.served_task import ServedTask


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


class ServedRanker(ServedTask):
    """A `TextRanker`, with the signature `rank`."""

    def more_signatures(self):
        return {"rank": (self.rank, {"query": 1, "candidates": 2})}

    def rank(self, texts):
        """Orders the candidates of queries: (string tensor (B,), string tensor (B, K))."""
        import tensorflow as tf

        scores = self.answer_texts(pair_up(*texts))["relevance"]
        return order_candidates(tf.reshape(scores, tf.shape(texts[1])))


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
