"""A WordPiece vocabulary: its file, its checks, its two directions of lookup."""

import os

# Begins each token of a word but the first: "playing" -> "play", "##ing".
CONTINUATION_PREFIX = "##"
#: The prefix of pieces of SentencePiece.
SPACE = "▁"


class Vocabulary:
    """An immutable list of WordPieces, one id each, in file order.

    Attributes:
        tokens: tuple of str; `tokens[id]` is the token. "" is an id that no text becomes.
        ids: dict, token -> id.
        source: str, the name of the vocabulary in error messages, such as "vocabulary vocab.txt".
    """

    def __init__(self, tokens, source="vocabulary list"):
        self.tokens = tuple(tokens)
        self.source = source
        _check_tokens(self.tokens, source)
        self.ids = {token: index for index, token in enumerate(self.tokens) if token}

    @classmethod
    def read(cls, path):
        """Reads `vocab.txt`: UTF-8, one token in each line, lines ended by LF or CRLF.

        Blank lines at the end are ignored. Other blank lines have ids, which no text becomes:
        SimBERT's file has such a line. Spaces around a token are dropped, as BERT's original
        loader drops them.
        """
        path = os.fspath(path)
        with open(path, "rb") as file:
            content = file.read()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"The vocabulary file {path} is not UTF-8: {error}. Save it as UTF-8."
            ) from error
        # Not str.splitlines, which also breaks at U+2028, U+0085 and others that may be tokens.
        lines = text.split("\n")
        while lines and not lines[-1].strip("\r"):
            lines.pop()
        return cls([line.strip() or line.rstrip("\r") for line in lines], f"vocabulary {path}")

    def files(self, names):
        """dict of the one name in `names` -> the tokens as UTF-8, one a line, ended by LF."""
        (name,) = names
        return {name: "".join(token + "\n" for token in self.tokens).encode()}

    def write(self, path):
        """Writes `vocab.txt`."""
        with open(path, "wb") as file:
            file.write(self.files(("vocab.txt",))["vocab.txt"])


def _check_tokens(tokens, source):
    if not any(tokens):
        raise ValueError(f"The {source} is empty. It must hold one WordPiece a line.")
    foreign = [t for t in tokens if isinstance(t, str) and t.startswith(SPACE) and t != SPACE]
    if len(foreign) > len(tokens) // 10:
        raise ValueError(
            f"{len(foreign)} of the {len(tokens)} pieces of the {source} begin with {SPACE!r}, "
            f"such as {foreign[0]!r}: they are pieces of SentencePiece. Use the .model file that "
            "came with them."
        )
    first_line = {}
    for line, token in enumerate(tokens, start=1):
        if not isinstance(token, str):
            raise ValueError(
                f"The {source} holds {token!r} of type {type(token).__name__} at line {line}."
            )
        if "\n" in token or "\r" in token:
            raise ValueError(
                f"The {source} holds {token!r} at line {line}: a piece is one line. Remove the "
                "line end in it."
            )
        if token and token in first_line:
            raise ValueError(
                f"The {source} holds pieces twice: {token!r} at lines {first_line[token]} and "
                f"{line}. BERT's loader and transformers' take the last one, so rename the others. "
                "Do not remove lines: this would shift every id after them."
            )
        first_line[token] = line
