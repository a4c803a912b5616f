"""The text that was written from each source."""

import numpy as np

from keras_bert_suite.tasks.answers.rows import RowAnswers


class TargetAnswers(RowAnswers):
    """Texts of the tokens that a decoder has written; for packed arrays logits (N, P, V)."""

    def detokenize(self, ids, tokenizer):
        """list of B str.

        Args:
            ids: int (B, T), the tokens of each target; what follows its end token is left out.
            tokenizer: of the task.
        """
        ended = np.cumsum(ids == tokenizer.end_token_id, axis=1) > 0
        kept = [row[~end].tolist() for row, end in zip(ids, ended, strict=True)]
        return [tokenizer.detokenize(row) for row in kept]

    def serve(self, ops, outputs, packed):
        """`probabilities` float32 (B, P, V). A SavedModel has the targets themselves."""
        return {"probabilities": ops.softmax(ops.cast(outputs, "float32"))}
