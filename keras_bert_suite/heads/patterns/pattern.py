"""A pattern: words around the places of texts and of one mask; and words in the mask's place."""

import re

import numpy as np

#: The name of the place of the masks.
MASK = "mask"

_EXAMPLE = "'{text} It was {mask}.'"


def read_pattern(pattern):
    """The parts of a pattern: list of (is a place, words or the name of the place).

    >>> read_pattern("{text} It was {mask}.")
    [(True, 'text'), (False, ' It was '), (True, 'mask'), (False, '.')]

    Raises:
        ValueError: without exactly one {mask}, without a text, or with the same text twice.
    """
    pieces = re.split(r"\{(\w+)\}", pattern) if isinstance(pattern, str) else [""]
    parts = [(place % 2 == 1, piece) for place, piece in enumerate(pieces) if piece]
    names = [name for is_place, name in parts if is_place]
    if names.count(MASK) != 1 or len(names) < 2 or len(set(names)) != len(names):
        raise ValueError(
            f"pattern must have one {{{MASK}}}, and the place of each text of a row once, such as "
            f"{_EXAMPLE}; got {pattern!r}. For a word of several tokens, {{{MASK}}} becomes as "
            "many masks as it needs."
        )
    return parts


def read_verbalizers(verbalizers):
    """dict of label -> its word, as given and checked."""
    is_dict = isinstance(verbalizers, dict) and len(verbalizers) > 1
    if not is_dict or not all(isinstance(v, str) for pair in verbalizers.items() for v in pair):
        raise ValueError(
            "verbalizers must be a dict of two or more labels -> the word that the mask stands "
            f"for, such as {{'positive': 'great', 'negative': 'terrible'}}; got {verbalizers!r}."
        )
    return dict(verbalizers)


def find_word_ids(tokenizer, verbalizers):
    """int32 (C, K): the token ids of the word of each label. -1 stands after the last one.

    Raises:
        ValueError: if a word has no token, or one that the vocabulary lacks; or if two labels have
            the same tokens.
    """
    found: dict[tuple[int, ...], str] = {}
    for label, word in verbalizers.items():
        ids = tuple(map(int, tokenizer.tokenize(word)))
        if not ids or tokenizer.unknown_token_id in ids:
            pieces = " ".join(map(tokenizer.id_to_token, ids)) or "no token"
            raise ValueError(
                f"The vocabulary lacks the verbalizer {word!r} of {label!r}: its pieces are "
                f"{pieces}. Choose another word; `MaskedLM.predict` shows what the model expects."
            )
        if ids in found:
            raise ValueError(
                f"The verbalizers of {found[ids]!r} and {label!r} are the same tokens, "
                f"{' '.join(map(tokenizer.id_to_token, ids))}. Choose another word for one of them."
            )
        found[ids] = label
    table = np.full((len(found), max(map(len, found))), -1, "int32")
    for row, ids in enumerate(found):
        table[row, : len(ids)] = ids
    return table
