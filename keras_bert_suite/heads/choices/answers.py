"""The choice of each row."""

import numpy as np

from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.probabilities import find_logits


class ChoiceAnswers(RowAnswers):
    """Scores of endings, logits (N, K)."""

    exported = {"probabilities": ("choices",)}
    read_exported = staticmethod(find_logits)

    def choose(self, outputs, xp=np):
        """int (N,), the ending that is the answer. `xp` is as for `ClassAnswers.choose`."""
        return xp.argmax(outputs, axis=-1)

    def serve(self, ops, outputs, packed):
        """`probabilities` float32 (B, K), `choices` int32 (B,), `ranking` int32 (B, K)."""
        return {
            "probabilities": ops.softmax(outputs, axis=-1),
            "choices": ops.cast(self.choose(outputs, xp=ops), "int32"),
            "ranking": ops.cast(ops.argsort(-outputs, axis=-1), "int32"),
        }
