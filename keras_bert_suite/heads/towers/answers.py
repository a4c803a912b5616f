"""The relevance of each text, from rows of one candidate."""

import numpy as np

from keras_bert_suite.heads.rankings.answers import RelevanceAnswers


class TowerAnswers(RelevanceAnswers):
    """Scores of pairs of a query and a text, from logits (N, 1) of the model."""

    #: A mean of scores has no vectors of its own, which `encode` returns and `score_matrix` takes.
    mean_forms = ()

    def decode(self, outputs, rows):
        outputs = np.stack(outputs) if isinstance(outputs, list) else outputs
        return outputs.reshape(len(outputs))

    def serve(self, ops, outputs, packed):
        """`relevance` float32 (B,), of a query and one text in each row."""
        return {"relevance": outputs[:, 0]}
