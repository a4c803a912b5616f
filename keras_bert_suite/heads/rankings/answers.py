"""The relevance of each text."""

from keras_bert_suite.heads.base import averages
from keras_bert_suite.heads.base.answers import RowAnswers


class RelevanceAnswers(RowAnswers):
    """Scores of pairs of a query and a text, logits (N,)."""

    exported = {"relevance": ()}
    mean_forms: tuple[str, ...] = (averages.LOGITS, averages.PROBABILITIES)
    are_of_training_rows = False

    def to_probabilities(self, logits, xp):
        return averages.sigmoid(xp, logits)

    def to_logits(self, probabilities, xp):
        return averages.find_log_odds(xp, probabilities)

    def serve(self, ops, outputs, packed):
        """`relevance` float32 (B,)."""
        return {"relevance": outputs}
