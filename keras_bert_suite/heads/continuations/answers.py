"""The continuation of each text."""

import numpy as np

from keras_bert_suite.heads.targets.answers import TargetAnswers


class ContinuationAnswers(TargetAnswers):
    """Texts of the tokens that follow a text; for packed arrays logits (N, P, V)."""

    def detokenize(self, ids, tokenizer):
        """list of B str, from tokens int (B, 1 + T), up to the end token of each.

        The first token is the last one of the text before. It says whether a space stands between
        the text and its continuation, and is left out, and so are special tokens.
        """
        firsts, ids = ids[:, 0], ids[:, 1:]
        is_kept = np.cumsum(ids == tokenizer.end_token_id, axis=1) == 0
        is_kept &= ~np.isin(ids, tokenizer.special_token_ids)
        texts = []
        for first, row, kept in zip(firsts.tolist(), ids, is_kept, strict=True):
            before = [] if first == tokenizer.start_token_id else [first]
            text = tokenizer.detokenize([*before, *row[kept].tolist()])
            texts.append(text.removeprefix(tokenizer.detokenize(before)))
        return texts


def list_stops(stop):
    """list of str, from the argument `stop`: a str, several or None.

    Anything else, and an empty str, is a ValueError.
    """
    several = isinstance(stop, (list, tuple))
    stops = list(stop) if several else [] if stop is None else [stop]
    if not all(isinstance(each, str) and each for each in stops):
        raise ValueError(f"stop must have strings with a character, got {stop!r}.")
    return stops


def cut_at(text, stops):
    """The beginning of a text before the first of some strings in it.

    >>> cut_at("one. two", [".", "w"])
    'one'
    """
    return text[: min((text.find(stop) for stop in stops if stop in text), default=len(text))]
