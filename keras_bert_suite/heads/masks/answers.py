"""Guesses for masked tokens, from logits."""

import numpy as np

from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.probabilities import find_logits, softmax
from keras_bert_suite.heads.masks.data import count_guessed


class GuessAnswers(RowAnswers):
    """For each mask of a text the `top_k` most probable tokens. The tokenizer names them."""

    exported = {"probabilities": ("masks", "vocabulary")}
    read_exported = staticmethod(find_logits)

    def __init__(self, data, top_k):
        self.data = data
        self.top_k = top_k

    def condense(self, outputs, rows):
        """The parts of logits that `decode` needs: the best of all tokens, see `rank_tokens`."""
        allowed = np.ones(self.data.packer.tokenizer.vocabulary_size(), bool)
        return outputs if rows.is_packed else rank_tokens(outputs, self.top_k, allowed)

    def decode(self, outputs, rows):
        """The guesses for texts, from `rank_tokens`; the logits themselves for packed arrays."""
        if rows.is_packed:
            return outputs
        return name_guesses(self.data.packer, outputs, rows.inputs)

    def serve(self, ops, outputs, packed):
        """The answers for masks: `probabilities` float32 (B, P, V)."""
        return {"probabilities": ops.softmax(ops.cast(outputs, "float32"))}


def rank_tokens(logits, top_k, allowed):
    """float64 (..., top_k, 2): the ids of the best tokens, and their probabilities.

    `allowed`, bool (V,), are the tokens that may be guessed. It may be shorter, because there may
    be more logits than tokens.
    """
    probabilities = softmax(np.asarray(logits, "float32"))
    allowed = np.pad(allowed, (0, probabilities.shape[-1] - len(allowed)))
    scores = np.where(allowed, probabilities, -1)
    best = np.argsort(-scores, axis=-1, kind="stable")[..., :top_k]
    return np.stack([best, np.take_along_axis(probabilities, best, axis=-1)], axis=-1)


def name_guesses(packer, ranked, segments):
    """The guesses for each text: for each mask a list of pairs (token, probability).

    `ranked` has an array (P, K, 2) for each text, from `rank_tokens`. Masks beyond the packer's
    `sequence_length` are left out.
    """
    tokenizer = packer.tokenizer
    counts = [count_guessed(packer, text) for text in segments[0]]
    return [
        [
            [(tokenizer.id_to_token(int(token)), float(probability)) for token, probability in slot]
            for slot in slots[:count]
        ]
        for slots, count in zip(ranked, counts, strict=True)
    ]
