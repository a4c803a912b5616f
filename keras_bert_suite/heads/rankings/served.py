"""Candidates in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.served_rows import order_candidates, pair_up


class ServedRanker(ServedTask):
    """A `TextRanker`, with the signature `rank`."""

    def more_signatures(self):
        return {"rank": (self.rank, {"query": 1, "candidates": 2})}

    def rank(self, texts):
        """Orders the candidates of queries: (string tensor (B,), string tensor (B, K))."""
        import tensorflow as tf

        scores = self.answer_texts(pair_up(*texts))["relevance"]
        return order_candidates(tf.reshape(scores, tf.shape(texts[1])))
