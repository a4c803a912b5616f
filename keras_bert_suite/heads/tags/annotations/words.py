"""Cuts texts into words, as BERT's tokenizer does, and spans of characters into spans of words.

A Chinese character and a punctuation mark are words. Spaces are between words.
"""

import bisect
import functools
import string
import unicodedata

#: The ranges of Chinese characters, as in `tokenizers/unicode_rules.py`.
_CHINESE = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0x2F800, 0x2FA1F)),
)


def cut_words(text):
    """The places of the words of a text, list of `(start, end)`.

    >>> text = "AT&T in 北京"
    >>> [text[start:end] for start, end in cut_words(text)]
    ['AT', '&', 'T', 'in', '北', '京']
    """
    words, begins = [], True
    for place, character in enumerate(text):
        kind = _find_kind(character)
        if kind == "space":
            begins = True
            continue
        if begins or kind == "alone":
            words.append((place, place + 1))
        else:
            words[-1] = (words[-1][0], place + 1)
        begins = kind == "alone"
    return words


def find_words(words, start, end):
    """The words that a part of a text touches: (first, last + 1).

    Args:
        words: list of `(start, end)`, from `cut_words`.
        start, end: int, the part of the text.
    """
    first = bisect.bisect_right(words, start, key=lambda word: word[1])
    return first, bisect.bisect_left(words, end, key=lambda word: word[0])


@functools.cache
def _find_kind(character):
    """ "space" between words, "alone" for a word by itself, "joined" for a part of a word."""
    if character.isspace():
        return "space"
    is_mark = character in string.punctuation or unicodedata.category(character).startswith("P")
    is_chinese = any(first <= ord(character) <= last for first, last in _CHINESE)
    return "alone" if is_mark or is_chinese else "joined"
