"""The tokens of a tokenizer by their ids."""

from keras_bert_suite.files.messages import shorten
from keras_bert_suite.tokenizers.added_tokens import check_ids


class NumberedTokens:
    """The tokens of a vocabulary, and the added tokens with the ids after them.

    `special_tokens` is a dict of argument name -> token that the vocabulary must hold. Without it,
    or if an added token has another id, it is a ValueError.

    Keras would track each token of a tuple or dict that a layer has, 0.2 s for 30,000 of them. So a
    tokenizer has them in this object.

    Attributes:
        tokens: tuple of V str, in the order of their ids.
        ids: dict of token -> id.
    """

    def __init__(self, vocabulary, added_tokens, special_tokens):
        _check_special_tokens(vocabulary, special_tokens)
        contents = [token.content for token in added_tokens]
        new = [content for content in contents if content not in vocabulary.ids]
        self.tokens = (*vocabulary.tokens, *new)
        numbers = range(len(vocabulary.tokens), len(self.tokens))
        self.ids = {**vocabulary.ids, **dict(zip(new, numbers, strict=True))}
        self._source = vocabulary.source
        check_ids(added_tokens, self.ids)

    def to_token(self, id):
        """int -> str. Raises ValueError if there is no such id."""
        if not 0 <= id < len(self.tokens):
            raise ValueError(f"`id` must be from 0 to {len(self.tokens) - 1}. Received: id={id}.")
        return self.tokens[id]

    def to_id(self, token):
        """str -> int. Raises ValueError if there is no such token."""
        if token not in self.ids:
            raise ValueError(
                f"{token!r} is not a piece of the {self._source}. A word that is no single "
                "piece has no id of its own: use `tokenize`."
            )
        return self.ids[token]


def _check_special_tokens(vocabulary, special_tokens):
    missing = {name: piece for name, piece in special_tokens.items() if piece not in vocabulary.ids}
    if missing:
        wanted = ", ".join(f"{shorten(repr(piece))} ({name})" for name, piece in missing.items())
        names = " or ".join(f"{name}=..." for name in missing)
        raise ValueError(
            f"The {vocabulary.source} of {len(vocabulary.tokens)} pieces lacks {wanted}. Add the "
            f"missing pieces, or name the pieces that play these parts with {names}."
        )
