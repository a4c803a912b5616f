"""The parts of the tokens of a vocabulary: their characters, or parts that a file names."""

import logging
from typing import Any, NamedTuple

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.data.readers.text_files import read_lines

_LOGGER = logging.getLogger(__name__)


class TokenParts(NamedTuple):
    """The parts of V tokens, for `PartEmbeddings(parts, num_parts)`.

    Attributes:
        parts: list of V lists of int, places in `names`. Special tokens have none.
        names: list of str, the parts in order.
        missing: list of str, the tokens that a file lacks. Special tokens do not count.
    """

    parts: list[list[int]]
    names: list[str]
    missing: list[str]

    @property
    def num_parts(self) -> int:
        """int, how many different parts there are."""
        return len(self.names)


def spell_tokens(tokenizer: Any, max_characters: int = 16) -> TokenParts:
    """The characters of each token, without the mark that it continues a word.

    Args:
        tokenizer: a tokenizer of this package.
        max_characters: int, how many characters of a token count, from its first on.
    """
    texts = _list_texts(tokenizer)
    return _number([list(text)[:max_characters] for text in texts], [])


def read_token_parts(path: PathLike, tokenizer: Any) -> TokenParts:
    """Reads the parts of tokens, such as the radicals of Chinese characters, from a file.

    Each line has the text of a token, a tab, and its parts with spaces between them, in UTF-8:

    ```
    河	氵 可
    树	木 又 寸
    ```

    A token that continues a word has the parts of its text. Texts that are no token are left out.
    Blank lines, and lines that begin with "#" and have no tab, are skipped.

    Args:
        path: the file. This package has no table of its own.
        tokenizer: a tokenizer of this package.

    Raises:
        ValueError: if a line has no tab or no parts, a text is in two lines, naming the lines, or
            no text is a token.
    """
    found: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or (line.startswith("#") and "\t" not in line):
            continue
        text, tab, rest = line.partition("\t")
        parts = rest.split()
        if not tab or not text or not parts:
            raise ValueError(
                f"{path}, line {number}: wanted a token, a tab and its parts with spaces between "
                f"them, got {line[:60]!r}."
            )
        if text in found:
            raise ValueError(
                f"{path}, line {number}: {text!r} is in line {lines[text]}, too. Keep one of them."
            )
        found[text], lines[text] = parts, number
    texts = _list_texts(tokenizer)
    rows = [found.get(text, []) for text in texts]
    if not any(rows):
        raise ValueError(
            f"{path}: none of its {len(found)} texts, such as {next(iter(found), '')!r}, is a "
            "token of the tokenizer. Wanted the file of another language, or another tokenizer."
        )
    missing = [text for text, row in zip(texts, rows, strict=True) if text and not row]
    if missing:
        _LOGGER.info("%s has no parts for %d of %d tokens.", path, len(missing), len(texts))
    return _number(rows, missing)


def _list_texts(tokenizer):
    """list of V str, the text of each token; "" for special tokens and parts of characters."""
    special = set(tokenizer.special_tokens)
    texts = []
    for token in tokenizer.get_vocabulary():
        # Behind a letter, a token that continues a word stands without its mark.
        text = "" if token in special else tokenizer.join_tokens(["a", token])[1:].strip()
        texts.append("" if "\ufffd" in text else text)
    return texts


def _number(rows, missing):
    names = sorted({part for row in rows for part in row})
    places = {name: place for place, name in enumerate(names)}
    return TokenParts([[places[part] for part in row] for row in rows], names, missing)
