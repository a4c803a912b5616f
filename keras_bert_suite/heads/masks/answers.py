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

    def decode(self, outputs, rows, names=None):
        """The guesses for texts, from `rank_tokens`; the logits themselves for packed arrays.

        `names` is a dict of a token id -> its name, or None for the names of the tokenizer.
        """
        if rows.is_packed:
            return outputs
        return name_guesses(self.data.packer, outputs, rows.inputs, names)

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


def find_targets(tokenizer, targets):
    """dict of the id of each target -> the target. Each must be a token, and no two the same."""
    if isinstance(targets, str) or not len(targets):
        raise ValueError(f"targets must be a list of words, at least one, got {targets!r}.")
    found = {}
    vocabulary = set(tokenizer.get_vocabulary())
    for target in targets:
        ids = (
            [tokenizer.token_to_id(target)] if target in vocabulary else tokenizer.tokenize(target)
        )
        if len(ids) != 1:
            tokens = " ".join(tokenizer.id_to_token(int(token)) for token in ids)
            raise ValueError(
                f"The target {target!r} is {len(ids)} tokens{f', {tokens}' if tokens else ''}, and "
                "a mask stands for one. Choose another word, or compare whole texts by "
                "`pseudo_perplexity`."
            )
        (token,) = map(int, ids)
        if token in found:
            raise ValueError(
                f"The targets {found[token]!r} and {target!r} are one token. Leave one out."
            )
        if token == tokenizer.unknown_token_id:
            raise ValueError(f"The vocabulary has no token for the target {target!r}.")
        found[token] = target
    return found


def name_guesses(packer, ranked, segments, names=None):
    """The guesses for each text: for each mask a list of pairs (token, probability).

    `ranked` has an array (P, K, 2) for each text, from `rank_tokens`. Masks beyond the packer's
    `sequence_length` are left out. `names` are as for `GuessAnswers.decode`.
    """
    name = packer.tokenizer.id_to_token if names is None else names.__getitem__
    counts = [count_guessed(packer, text) for text in segments[0]]
    return [
        [
            [(name(int(token)), float(probability)) for token, probability in slot]
            for slot in slots[:count]
        ]
        for slots, count in zip(ranked, counts, strict=True)
    ]
