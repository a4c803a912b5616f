"""The relevance of each text."""

from keras_bert_suite.heads.base.answers import RowAnswers


class RelevanceAnswers(RowAnswers):
    """Scores of pairs of a query and a text, logits (N,)."""

    exported = {"relevance": ()}

    def serve(self, ops, outputs, packed):
        """`relevance` float32 (B,)."""
        return {"relevance": outputs}
