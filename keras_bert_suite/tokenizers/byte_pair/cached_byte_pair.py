"""The eager engine. A regular expression finds words, and each distinct word is merged once."""

import functools
import re
from array import array

from keras_bert_suite.tokenizers.byte_pair.byte_pair_vocabulary import byte_characters, encode_bytes
from keras_bert_suite.tokenizers.byte_pair.canonical_composition import compose, compose_with_spans
from keras_bert_suite.tokenizers.byte_pair.character_classes import LETTERS, NUMBERS, SPACES
from keras_bert_suite.tokenizers.engines import (
    CachedEngine,
    SegmentCache,
    drop_surrogates,
    place_characters,
)
from keras_bert_suite.tokenizers.unicode_rules import python_class


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

    Several threads may call one engine. `add_prefix_space` says whether a text that begins without
    a space gets one, and `composed` whether it is composed first, see `canonical_composition`.
    """

    def __init__(self, vocabulary, add_prefix_space, composed=False):
        from tokenizers.models import BPE

        self._model = BPE(vocabulary.ids, list(vocabulary.merges))
        self._add_prefix_space = add_prefix_space
        self._composed = composed
        self._bytes = vocabulary.piece_bytes()
        # A byte without a token is dropped, as in transformers. A trained vocabulary has all bytes.
        self._known_bytes = {b for b, c in enumerate(byte_characters()) if c in vocabulary.ids}
        self._word_ids = SegmentCache(self._merge)

    def _tokenize(self, text):
        """str -> bytes, int32 ids."""
        text = drop_surrogates(text)
        text = self._begin(compose(text) if self._composed else text)
        return b"".join(map(self._word_ids.__getitem__, word_pattern().findall(text)))

    def _begin(self, text):
        needs_space = self._add_prefix_space and text and not text.startswith(" ")
        return " " + text if needs_space else text

    def _merge(self, word):
        tokens = self._model.tokenize(encode_bytes(word.encode()))
        return array("i", [token.id for token in tokens]).tobytes()

    def tokenize_with_offsets(self, text):
        """str -> (ids, offsets, word_starts), as `TextTokenizer.tokenize_with_offsets`."""
        begun, starts, ends = self._prepare(text)
        # For each byte that has a token the index of its character.
        indices = [i for i, c in enumerate(begun) for b in c.encode() if b in self._known_bytes]
        ids, offsets, word_starts, place = [], [], [], 0
        for word in word_pattern().findall(begun):
            for number, id in enumerate(array("i", self._word_ids[word])):
                piece = self._bytes[id]
                start, end = indices[place], indices[place + len(piece) - 1] + 1
                start = min(start + len(piece) - len(piece.lstrip(b" ")), end)
                end = max(end - len(piece) + len(piece.rstrip(b" ")), start)
                ids.append(id)
                word_starts.append(number == 0)
                offsets.append((starts[start], ends[end - 1] if end > start else starts[start]))
                place += len(piece)
        return ids, offsets, word_starts

    def _prepare(self, text):
        """str -> (the text that is split; for each of its characters where it begins and ends).

        The characters without a character of `text` begin and end where `text` begins. Last in the
        list of beginnings is the end of `text`.
        """
        prepared, kept = place_characters(text)
        # What is left out belongs to the character before it.
        kept.append(len(text))
        spans = [(i, i + 1) for i in range(len(prepared))]
        if self._composed:
            prepared, spans = compose_with_spans(prepared)
        begun = self._begin(prepared)
        num_new = len(begun) - len(prepared)
        starts = [*[0] * num_new, *(kept[start] for start, _ in spans), len(text)]
        ends = [*kept[:1] * num_new, *(kept[end] for _, end in spans)]
        return begun, starts, ends
