"""The eager engine. A regular expression finds words, and each distinct word is merged once."""

import functools
import re
from array import array

from keras_bert_suite.tokenizers.byte_pair.byte_pair_vocabulary import (
    byte_characters,
    decode_bytes,
    encode_bytes,
)
from keras_bert_suite.tokenizers.byte_pair.character_classes import LETTERS, NUMBERS, SPACES
from keras_bert_suite.tokenizers.segment_cache import CachedEngine, SegmentCache
from keras_bert_suite.tokenizers.unicode_rules import python_class

_SURROGATES = re.compile("[\ud800-\udfff]")


@functools.cache
def word_pattern():
    """The compiled expression whose matches are words: GPT-2's, with our classes of characters."""
    letters, numbers, spaces = map(python_class, (LETTERS, NUMBERS, SPACES))
    return re.compile(
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{letters}]+| ?[{numbers}]+| ?[^{spaces}{letters}{numbers}]+"
        rf"|[{spaces}]+(?![^{spaces}])|[{spaces}]+"
    )


class CachedBytePair(CachedEngine):
    """Text to ids. The Rust library encodes each word of a text.

    Several threads may call one engine.

    Args:
        vocabulary: `BytePairVocabulary`.
        add_prefix_space: bool, whether a text that begins without a space gets one.
    """

    def __init__(self, vocabulary, add_prefix_space):
        from tokenizers.models import BPE

        self._model = BPE(vocabulary.ids, list(vocabulary.merges))
        self._add_prefix_space = add_prefix_space
        self._bytes = list(map(decode_bytes, vocabulary.tokens))
        # A byte without a piece is dropped, as in transformers. A trained vocabulary has all bytes.
        self._known_bytes = {b for b, c in enumerate(byte_characters()) if c in vocabulary.ids}
        self._word_ids = SegmentCache(self._merge)

    def _tokenize(self, text):
        """str -> bytes, int32 ids."""
        return b"".join(self._tokenize_by_word(text))

    def _tokenize_by_word(self, text):
        """str -> for each word bytes, int32 ids."""
        words = word_pattern().findall(self._begin(_SURROGATES.sub("", text)))
        return map(self._word_ids.__getitem__, words)

    def _begin(self, text):
        needs_space = self._add_prefix_space and text and not text.startswith(" ")
        return " " + text if needs_space else text

    def _merge(self, word):
        tokens = self._model.tokenize(encode_bytes(word.encode()))
        return array("i", [token.id for token in tokens]).tobytes()

    def tokenize_with_offsets(self, text):
        """str -> (ids, offsets, word_starts).

        They are a list of int, a list of (start, end) in characters of `text`, and a list of bool.
        """
        kept = [index for index, c in enumerate(text) if not "\ud800" <= c <= "\udfff"]
        begun = self._begin("".join(map(text.__getitem__, kept)))
        # For each character its index in `text`; last the length of `text`.
        origins = [*[0] * (len(begun) - len(kept)), *kept, len(text)]
        known = self._known_bytes
        # For each byte the index of its character.
        indices = [i for i, c in enumerate(begun) for byte in c.encode() if byte in known]
        ids, offsets, word_starts, place = [], [], [], 0
        for word_ids in self._tokenize_by_word(text):
            of_word = array("i", word_ids)
            ids += of_word
            word_starts += [number == 0 for number in range(len(of_word))]
        for id in ids:
            piece = self._bytes[id]
            start, end = indices[place], indices[place + len(piece) - 1] + 1
            start = min(start + len(piece) - len(piece.lstrip(b" ")), end)
            end = max(end - len(piece) + len(piece.rstrip(b" ")), start)
            offsets.append((origins[start], origins[end]))
            place += len(piece)
        return ids, offsets, word_starts
