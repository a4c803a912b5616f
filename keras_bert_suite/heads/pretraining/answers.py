"""The outputs of the heads of pretraining."""

from keras_bert_suite.heads.base.answers import RowAnswers


class PretrainingAnswers(RowAnswers):
    """Logits of relations (N, R) for pairs of texts, all outputs for packed arrays."""

    def condense(self, outputs, rows):
        return outputs if rows.is_packed else outputs["nsp"]

    def decode(self, outputs, rows):
        outputs = self.condense(outputs, rows) if isinstance(outputs, dict) else outputs
        return super().decode(outputs, rows)
