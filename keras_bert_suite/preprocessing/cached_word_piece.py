"""The eager engine: Google's rules for Python strings, each distinct segment analysed once."""

import functools
import itertools
import re

import numpy as np

from keras_bert_suite.preprocessing.unicode_rules import (
    ASCII_SYMBOLS,
    CJK,
    PUNCTUATION,
    SPACE,
    VISIBLE_MARKS,
    CharacterMap,
    lower_sigma,
    python_class,
)
from keras_bert_suite.preprocessing.vocabulary import CONTINUATION_PREFIX

MAX_CHARACTERS_PER_WORD = 200
# These bound the memory of a cache: some tens of megabytes when full.
MAX_CACHED_SEGMENTS = 1 << 17
MAX_CACHED_LENGTH = 64


class CachedWordPiece:
    """Text to ids: the Rust library's WordPiece under our own normalization.

    Natural text repeats its words, so a dictionary of the segments already seen answers for all but
    a few percent of them, and the exact rules can stay plain Python. Several threads may call.

    Args:
        vocabulary: `Vocabulary`.
        unknown_token: str, the piece for words that cannot be split.
        lowercase, strip_accents: bool.
    """

    def __init__(self, vocabulary, unknown_token, lowercase, strip_accents):
        from tokenizers.models import WordPiece

        self._lowercase = lowercase
        self._strip_accents = strip_accents
        self._characters = CharacterMap(lowercase, strip_accents)
        self._model = WordPiece(
            vocabulary.ids,
            unk_token=unknown_token,
            max_input_chars_per_word=MAX_CHARACTERS_PER_WORD,
        )
        self._segment_ids = _SegmentCache(self._analyse_ids)
        self._segment_pieces = _SegmentCache(self._analyse)

    def tokenize(self, text):
        """str -> list of int."""
        segments = self._segment_pattern(text).findall(text)
        return list(itertools.chain.from_iterable(map(self._segment_ids.__getitem__, segments)))

    def tokenize_flat(self, texts):
        """n str -> (ids of all texts in a row, int32; number of ids of each, int64 of n)."""
        flat, lengths = [], []
        lookup = self._segment_ids.__getitem__
        for text in texts:
            before = len(flat)
            segments = self._segment_pattern(text).findall(text)
            flat.extend(itertools.chain.from_iterable(map(lookup, segments)))
            lengths.append(len(flat) - before)
        return np.array(flat, dtype=np.int32), np.array(lengths, dtype=np.int64)

    def tokenize_with_offsets(self, text):
        """str -> (ids, offsets): list of int, list of (start, end) in characters of `text`."""
        ids, offsets = [], []
        for match in self._segment_pattern(text).finditer(text):
            base = match.start()
            pieces = self._segment_pieces[match.group()]
            leading = pieces[0][1] if pieces else len(match.group())
            if leading and offsets and offsets[-1][1] == base:
                # Deleted characters belong to what they follow.
                offsets[-1] = (offsets[-1][0], base + leading)
            for id, start, end in pieces:
                ids.append(id)
                offsets.append((base + start, base + end))
        return ids, offsets

    def _segment_pattern(self, text):
        for_ascii, for_any, for_sigma = _segment_patterns()
        if text.isascii():
            return for_ascii
        return for_sigma if self._lowercase and "Σ" in text else for_any

    def _analyse_ids(self, segment):
        if not segment.isascii():
            return tuple(id for id, _, _ in self._analyse(segment))
        words = _word_pattern().findall(segment.translate(self._characters))
        return tuple(token.id for word in words for token in self._model.tokenize(word))

    def _analyse(self, segment):
        """Segment -> tuple of (id, start, end), offsets in characters of the segment.

        A piece spans every character that it has a part of, and the deleted ones that follow.
        """
        normalized, origins = self._normalize(segment)
        origins.append(len(segment))
        pieces = []
        for word in _word_pattern().finditer(normalized):
            tokens = self._model.tokenize(word.group())
            start = word.start()
            for token in tokens:
                end = start + len(token.value)
                if len(tokens) == 1:
                    end = word.end()  # The whole word, or the unknown token for it.
                elif start > word.start():
                    end -= len(CONTINUATION_PREFIX)
                # One character may become several pieces.
                after = end
                while origins[after] == origins[end - 1]:
                    after += 1
                pieces.append((token.id, origins[start], origins[after]))
                start = end
        return tuple(pieces)

    def _normalize(self, segment):
        """Segment -> (normalized str, for each of its characters the index it came from)."""
        if self._lowercase and "Σ" in segment:
            segment = lower_sigma(segment)
        parts = [(part, i) for i, c in enumerate(segment) for part in self._characters[ord(c)]]
        normalized = "".join(part for part, _ in parts)
        if self._strip_accents and len(_visible_mark_pattern().findall(normalized)) > 1:
            return self._characters.normalize_in_order(segment)
        return normalized, [index for _, index in parts]


class _SegmentCache(dict):
    """Segment -> its analysis, made when the segment is first met."""

    def __init__(self, analyse):
        super().__init__()
        self._analyse = analyse

    def __missing__(self, segment):
        analysis = self._analyse(segment)
        if len(segment) <= MAX_CACHED_LENGTH:
            if len(self) >= MAX_CACHED_SEGMENTS:
                # Frequent segments come back at once; those of a corpus that is done do not.
                self.clear()
            self[segment] = analysis
        return analysis


@functools.cache
def _segment_patterns():
    """(for ASCII text, for other text, for text with a capital sigma).

    A segment is a run whose ids do not depend on what surrounds it. Punctuation separates, except
    for the final sigma, which is recognised across an apostrophe.
    """
    space, cjk, punctuation = map(python_class, (SPACE, CJK, PUNCTUATION))
    symbols = python_class(ASCII_SYMBOLS)
    return (
        re.compile(f"[^ \t\n\r{symbols}]+|[{symbols}]"),
        re.compile(f"[^{space}{cjk}{punctuation}]+|[{cjk}{punctuation}]"),
        re.compile(f"[^{space}{cjk}]+|[{cjk}]"),
    )


@functools.cache
def _word_pattern():
    punctuation = python_class(PUNCTUATION)
    return re.compile(f"[^{punctuation}]+|[{punctuation}]")


@functools.cache
def _visible_mark_pattern():
    return re.compile(f"[{python_class(VISIBLE_MARKS)}]")
