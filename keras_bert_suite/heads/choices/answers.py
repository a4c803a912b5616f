"""The choice of each row."""

import numpy as np

from keras_bert_suite.data.text_lists import find_texts
from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.averages import LOGITS, PROBABILITIES
from keras_bert_suite.heads.base.probabilities import find_logits, softmax


def drop_absent(outputs, rows):
    """Outputs (N, K); or a list of N arrays (K,) if rows have different numbers of endings."""
    if not rows.is_packed and len(rows.inputs) > 1:
        counts = find_texts(rows.inputs[1:]).sum(axis=0)
        if len({*counts}) > 1:
            return [row[:count] for row, count in zip(outputs, counts, strict=True)]
    return np.stack(outputs) if isinstance(outputs, list) else outputs


class ChoiceAnswers(RowAnswers):
    """Scores of endings, logits (N, K)."""

    exported = {"probabilities": ("choices",)}
    mean_forms = (PROBABILITIES, LOGITS)
    read_exported = staticmethod(find_logits)

    def decode(self, outputs, rows):
        """float32 (N, K); or a list of N arrays (K,) if rows have different numbers of endings."""
        return drop_absent(outputs, rows)

    def decode_probabilities(self, outputs, rows):
        """The probabilities of the endings, in the form of `decode`."""
        scores = self.decode(outputs, rows)
        return [softmax(row) for row in scores] if isinstance(scores, list) else softmax(scores)

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
