"""Candidates in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask, order_candidates
from keras_bert_suite.heads.choices.data import pair_up
from keras_bert_suite.preprocessing.packing import tensorflow_namespace


class ServedRanker(ServedTask):
    """A `TextRanker`, with the signature `rank`."""

    def more_signatures(self):
        return {"rank": (self.rank, {"query": 1, "candidates": 2})}

    def rank(self, texts):
        """Orders the candidates of queries: (string tensor (B,), string tensor (B, K))."""
        xp = tensorflow_namespace()
        scores = self.answer_texts(pair_up(xp, *texts))["relevance"]
        return order_candidates(xp.reshape(scores, xp.shape(texts[1])))
