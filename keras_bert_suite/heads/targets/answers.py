"""The target of each text."""

import numpy as np

from keras_bert_suite.heads.base.answers import RowAnswers


class TargetAnswers(RowAnswers):
    """Texts of the tokens that a decoder has written; for packed arrays logits (N, P, V)."""

    def detokenize(self, ids, tokenizer):
        """list of B str, from the tokens of targets, int (B, 1 + T), up to the end token of each.

        The first token, which the decoder has read, is left out, and so are special tokens, such
        as the unknown token.
        """
        ids = ids[:, 1:]
        ended = np.cumsum(ids == tokenizer.end_token_id, axis=1) > 0
        left_out = ended | np.isin(ids, tokenizer.special_token_ids)
        kept = [row[~out].tolist() for row, out in zip(ids, left_out, strict=True)]
        return [tokenizer.detokenize(row) for row in kept]

    def serve(self, ops, outputs, packed):
        """`probabilities` float32 (B, P, V). A SavedModel has the targets themselves."""
        return {"probabilities": ops.softmax(ops.cast(outputs, "float32"))}
