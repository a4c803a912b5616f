"""The relation of each row."""

from keras_bert_suite.heads.base.answers import ClassAnswers
from keras_bert_suite.heads.relations.scores import score_relations


class RelationAnswers(ClassAnswers):
    """Relations between two entities, from logits (N, C)."""

    def score(self, outputs, rows, labels, other="Other"):
        """dict of scores of outputs against encoded labels; see `score_relations`."""
        labels = labels if labels.ndim == 1 else labels.argmax(axis=-1)
        return score_relations(labels, self.choose(outputs), self.labels.names, other)
