"""The tokens and merges of byte-pair encoding: their files, their checks, their bytes."""

import functools
import json
import os
import warnings

from keras_bert_suite.files.atomic_file import parse_json
from keras_bert_suite.files.messages import list_names, shorten

#: The first character of tokens that begin with a space.
SPACE = "Ġ"


@functools.cache
def byte_characters():
    """The 256 characters that stand for bytes in tokens, str, in the order of the bytes.

    A printable byte is written as itself. Every other byte is written as a character from U+0100
    on (GPT-2's `bytes_to_unicode`).
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in printable else next(others)) for byte in range(256))


@functools.cache
def _bytes_of_characters():
    return {character: byte for byte, character in enumerate(byte_characters())}


def encode_bytes(data):
    """Bytes to the characters of pieces: b" caf\\xc3\\xa9" -> "ĠcafÃ©"."""
    return data.decode("latin-1").translate(byte_characters())


def decode_bytes(piece):
    """A token to its bytes. A character that stands for no byte is encoded as UTF-8."""
    table = _bytes_of_characters()
    return b"".join(bytes([table[c]]) if c in table else c.encode() for c in piece)


def read_first_character(content):
    """The character at the beginning of the bytes of a piece; "" if they begin within a character.

    Of a character that the next piece ends, this is the first character with these bytes.
    """
    length = 1 + sum(content[0] >= first for first in (0xC0, 0xE0, 0xF0))
    return content[:length].ljust(length, b"\x80").decode(errors="ignore")


def read_last_character(content):
    """The character at the end of the bytes of a piece; U+FFFD if they end within a character."""
    return content[-4:].decode(errors="replace")[-1]


class BytePairVocabulary:
    """An immutable list of tokens, one id each, and of the merges that make them.

    Args:
        ids: dict of token -> id, which count up from 0.
        merges: list of (left token, right token) or "left right". The first merge is made first.
        source: str, the name of the vocabulary in error messages.

    `tokens` is a tuple of str; `tokens[id]` is the token. `merges` is a tuple of (str, str).

    Raises:
        ValueError: if ids are missing, or if a part or the product of a merge has no id.
    """

    def __init__(self, ids, merges, source="vocabulary"):
        self.source = source
        self.ids = _check_ids(ids, source)
        self.tokens = tuple(sorted(self.ids, key=self.ids.get))
        self.merges = tuple(map(_split_merge, merges))
        for merge in self.merges:
            missing = [piece for piece in (*merge, "".join(merge)) if piece not in self.ids]
            if missing:
                raise ValueError(
                    f"The merge {shorten(repr(' '.join(merge)))} needs the piece "
                    f"{shorten(repr(missing[0]))}, which the {source} of {len(self.ids)} pieces "
                    "lacks. Use the merges that came with the vocabulary."
                )
        self._warn_of_unmade()

    @classmethod
    def read(cls, vocabulary, merges):
        """Reads `vocab.json` and `merges.txt`, or takes a dict and a list in their place."""
        source = "vocabulary"
        if isinstance(vocabulary, str | os.PathLike):
            source = f"vocabulary {os.fspath(vocabulary)}"
            vocabulary = _read_ids(vocabulary)
        if isinstance(merges, str | os.PathLike):
            merges = _read_merges(merges)
        return cls(vocabulary, merges, source)

    def piece_bytes(self):
        """list of bytes, the text of each token."""
        return [decode_bytes(token) for token in self.tokens]

    def _warn_of_unmade(self):
        """Warns if no merge makes some of the tokens, as when a merges.txt was cut off."""
        made = {"".join(merge) for merge in self.merges}
        words = [piece for piece in self.tokens if piece.startswith(SPACE) and piece != SPACE]
        unmade = [piece for piece in words if piece not in made]
        if unmade:
            warnings.warn(
                f"{len(unmade)} of the {len(words)} pieces of the {self.source} that begin with a "
                f"space are made by none of the {len(self.merges)} merges, such as "
                f"{shorten(repr(unmade[0]))}. No text gets these pieces. Check that merges.txt is "
                "whole, and that it came with the vocabulary.",
                stacklevel=2,
            )

    def files(self, names):
        """dict of the two names in `names` -> bytes: the ids as JSON, the merges a line each."""
        vocabulary_file, merges_file = names
        ids = {token: index for index, token in enumerate(self.tokens)}
        lines = ["#version: 0.2", *(" ".join(merge) for merge in self.merges)]
        return {
            vocabulary_file: (json.dumps(ids, ensure_ascii=False) + "\n").encode(),
            merges_file: ("\n".join(lines) + "\n").encode(),
        }


def _check_ids(ids, source):
    if not isinstance(ids, dict) or not ids:
        raise ValueError(
            f"The {source} must be a dict of pieces and their ids, got {type(ids).__name__} "
            f"{shorten(repr(ids), 60)}. A vocab.txt belongs to WordPieceTokenizer."
        )
    wrong = [piece for piece, index in ids.items() if type(index) is not int or not piece]
    if wrong or sorted(ids.values()) != list(range(len(ids))):
        wrong = f" Look at {list_names(map(repr, wrong[:3]))}." if wrong else ""
        raise ValueError(
            f"The ids of the {len(ids)} pieces of the {source} must count up from 0 to "
            f"{len(ids) - 1}, one each.{wrong} Use the vocab.json that came with the weights."
        )
    return dict(ids)


def _split_merge(merge):
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f"A merge is two pieces with one space between them, got {shorten(repr(merge))}. Use "
            "the merges.txt that came with the vocabulary."
        )
    return tuple(parts)


def _read_merges(path):
    """The lines of a merges.txt, list of (str, str)."""
    merges = []
    # Not str.splitlines, which also breaks at characters that may be tokens.
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        line = line.rstrip("\r")
        if not line or line.startswith("#version"):
            continue
        try:
            merges.append(_split_merge(line))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}, line {number}: {error}") from None
    return merges


def _read_ids(path):
    text = _read_text(path)
    try:
        return parse_json(text, object)  # `_check_ids` says more of what it should be.
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)} {error}. Wanted a vocab.json, an object of pieces "
            "and their ids. A vocab.txt belongs to WordPieceTokenizer."
        ) from error


def _read_text(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(path)} is not UTF-8 ({error}). Download it again.") from error
