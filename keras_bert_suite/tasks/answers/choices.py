"""The chosen ending of each prompt."""

from keras_bert_suite.tasks.answers.rows import RowAnswers


class ChoiceAnswers(RowAnswers):
    """Scores of endings, logits (N, K)."""

    def serve(self, ops, outputs, packed):
        """`probabilities` float32 (B, K), `choices` int32 (B,)."""
        return {
            "probabilities": ops.softmax(outputs, axis=-1),
            "choices": ops.cast(ops.argmax(outputs, axis=-1), "int32"),
        }
