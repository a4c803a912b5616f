"""Splits Python text into BERT's words, by way of segments that a cache can look up."""

import functools
import re

from keras_bert_suite.tokenizers.unicode_rules import (
    ASCII_SYMBOLS,
    CJK,
    FINAL_SIGMA,
    PUNCTUATION,
    SPACE,
    VISIBLE_MARKS,
    CharacterMap,
    python_class,
)

MAX_CHARACTERS_PER_WORD = 200


class WordSplitter:
    """Google's rules for Python strings, up to the words that WordPiece splits.

    A segment is a part of a text whose words do not depend on the text around it. Natural text
    repeats its segments. A caller that counts or caches segments analyses each of them once, so
    the exact rules can stay plain Python.

    ```python
    splitter = WordSplitter(lowercase=True, strip_accents=True)
    splitter.segment_pattern("Où, là?").findall("Où, là?")      # ["Où", ",", "là", "?"]
    splitter.split_segment("Où")                                # ["ou"]
    ```

    Args:
        lowercase, strip_accents: bool.
    """

    def __init__(self, lowercase, strip_accents):
        self._lowercase = lowercase
        self._strip_accents = strip_accents
        self._characters = CharacterMap(lowercase, strip_accents)

    def segment_pattern(self, text):
        """The compiled regular expression whose matches in `text` are its segments."""
        for_ascii, for_any, for_sigma = _segment_patterns()
        if text.isascii():
            return for_ascii
        return for_sigma if self._lowercase and "Σ" in text else for_any

    def split_segment(self, segment):
        """The words of a segment, list of str. Most segments have one word."""
        if segment.isascii():
            for_ascii, *_ = _segment_patterns()
            return for_ascii.findall(segment.translate(self._characters))
        return word_pattern().findall(self.normalize(segment)[0])

    def normalize(self, segment):
        """Segment to (normalized str, list of int: the index each of its characters came from)."""
        if self._lowercase:
            segment = FINAL_SIGMA.apply(segment)
        parts = [(part, i) for i, c in enumerate(segment) for part in self._characters[ord(c)]]
        normalized = "".join(part for part, _ in parts)
        if self._strip_accents and len(_visible_mark_pattern().findall(normalized)) > 1:
            return self._characters.normalize_in_order(segment)
        return normalized, [index for _, index in parts]


@functools.cache
def _segment_patterns():
    """(for ASCII text, for other text, for text with a capital sigma).

    Punctuation separates, except for the final sigma, which is recognised across an apostrophe.
    """
    space, cjk, punctuation = map(python_class, (SPACE, CJK, PUNCTUATION))
    symbols = python_class(ASCII_SYMBOLS)
    return (
        re.compile(f"[^ \t\n\r{symbols}]+|[{symbols}]"),
        re.compile(f"[^{space}{cjk}{punctuation}]+|[{cjk}{punctuation}]"),
        re.compile(f"[^{space}{cjk}]+|[{cjk}]"),
    )


@functools.cache
def word_pattern():
    """The compiled expression whose matches in a normalized segment are words."""
    punctuation = python_class(PUNCTUATION)
    return re.compile(f"[^{punctuation}]+|[{punctuation}]")


@functools.cache
def _visible_mark_pattern():
    return re.compile(f"[{python_class(VISIBLE_MARKS)}]")
