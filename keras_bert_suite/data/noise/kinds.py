"""The kinds of noise: the places of a text that each may change, and what may stand there instead.

An edit is a tuple (start, end, choices): characters `start` to `end` of the text, and a tuple of
str, each of which may take their place.
"""

import re
from collections.abc import Callable, Iterator

from keras_bert_suite.data.noise.keys import find_key_neighbors
from keras_bert_suite.data.noise.look_alikes import HOMOGLYPHS, OCR_CONFUSIONS
from keras_bert_suite.data.noise.pinyin import find_homophones, find_pinyin_neighbors

Edit = tuple[int, int, tuple[str, ...]]

#: Letters and digits with nothing between them.
_RUN = re.compile(r"[^\W_]+")
_SPACE = re.compile(r"(?<=\S)\s+(?=\S)")

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"


def find_wrong_keys(text: str) -> Iterator[Edit]:
    """A letter is the one of a key beside its key; a Chinese character has such a pinyin."""
    yield from _exchange(text, lambda c: find_key_neighbors(c) or find_pinyin_neighbors(c))


def find_swaps(text: str) -> Iterator[Edit]:
    """Two letters of a word that stand side by side change places."""
    for run in _RUN.finditer(text):
        for place in range(run.start(), run.end() - 1):
            if text[place] != text[place + 1]:
                yield place, place + 2, (text[place + 1] + text[place],)


def find_deletions(text: str) -> Iterator[Edit]:
    """A letter is missing. A word of a single letter stays."""
    for run in _RUN.finditer(text):
        if len(run[0]) > 1:
            yield from ((place, place + 1, ("",)) for place in range(*run.span()))


def find_insertions(text: str) -> Iterator[Edit]:
    """After a letter of a to z any of them stands, and after other characters the same again."""
    for run in _RUN.finditer(text):
        for place in range(run.start(), run.end()):
            yield place + 1, place + 1, list_insertions(text[place])


def find_scanner_errors(text: str) -> Iterator[Edit]:
    """Optical character recognition has mistaken one character, or a pair, for others."""
    for length in (1, 2):
        for place in range(len(text) - length + 1):
            if found := OCR_CONFUSIONS.get(text[place : place + length]):
                yield place, place + length, found


def find_lost_spaces(text: str) -> Iterator[Edit]:
    """The space between two words is missing."""
    yield from ((*match.span(), ("",)) for match in _SPACE.finditer(text))


def find_added_spaces(text: str) -> Iterator[Edit]:
    """A space stands within a word."""
    for run in _RUN.finditer(text):
        yield from ((place, place, (" ",)) for place in range(run.start() + 1, run.end()))


def find_homoglyphs(text: str) -> Iterator[Edit]:
    """A letter is one of another script that is drawn like it."""
    yield from _exchange(text, lambda c: tuple(HOMOGLYPHS.get(c, ())))


def find_wrong_homophones(text: str) -> Iterator[Edit]:
    """A Chinese character is another one with the same pinyin."""
    yield from _exchange(text, find_homophones)


#: The name of each kind -> function from a text to its edits.
KINDS: dict[str, Callable[[str], Iterator[Edit]]] = {
    "keyboard": find_wrong_keys,
    "swap": find_swaps,
    "delete": find_deletions,
    "insert": find_insertions,
    "ocr": find_scanner_errors,
    "lost_space": find_lost_spaces,
    "added_space": find_added_spaces,
    "homoglyph": find_homoglyphs,
    "homophone": find_wrong_homophones,
}

#: Kinds that change the number of words.
SPACE_KINDS = ("lost_space", "added_space")


def list_insertions(character: str) -> tuple[str, ...]:
    """What may be typed too much beside a letter, a digit or another character."""
    for alphabet in (LETTERS, LETTERS.upper(), _DIGITS):
        if character in alphabet:
            return tuple(alphabet)
    return (character,)


def _exchange(text, find):
    """The edits of single characters."""
    for place, character in enumerate(text):
        if found := find(character):
            yield place, place + 1, found
