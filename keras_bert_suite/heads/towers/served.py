"""An encoder and a scorer in the graph of one SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask, order_candidates


class ServedTowers(ServedTask):
    """A `TwoTowerRanker`, with the signatures `encode`, `score` and `rank`.

    A service keeps what `encode` returns for each text, and asks `score` for pairs of vectors.
    """

    def more_signatures(self):
        import tensorflow as tf

        vector = tf.TensorSpec([None, self.task.width], tf.float32)
        return {
            "encode": (self.encode, {"text": 1}),
            "score": (self.score, {"query_embedding": vector, "text_embedding": vector}),
            "rank": (self.rank, {"query": 1, "candidates": 2}),
        }

    def encode(self, texts):
        """dict of `embedding` float32 (B, P), of a tuple of one string tensor (B,)."""
        encoder, _ = self.task.split_towers()
        packed = self.pack_rows(texts[0], 1)
        return {"embedding": encoder(packed, training=False)[:, 0]}

    def score(self, vectors):
        """dict of `relevance` float32 (B,), of vectors of queries and of texts, float32 (B, P)."""
        import tensorflow as tf

        _, scorer = self.task.split_towers()
        return {"relevance": scorer(tf.stack(vectors, axis=1), training=False)[:, 0]}

    def rank(self, texts):
        """Orders the candidates of queries: (string tensor (B,), string tensor (B, K)).

        Each query is encoded once.
        """
        import tensorflow as tf

        queries, candidates = texts
        rows = tf.concat([queries[:, None], candidates], axis=1)
        packed = self.pack_rows(tf.reshape(rows, [-1]), tf.shape(rows)[1])
        return order_candidates(self.task(packed, training=False))

    def pack_rows(self, texts, num_texts):
        """Packs the string tensor (B S,) of rows of S texts: the inputs of the model (B, S, L)."""
        import tensorflow as tf

        packed = self.data.pack_rows(texts, num_texts)
        return {name: tf.cast(array, tf.int32) for name, array in packed.items()}
