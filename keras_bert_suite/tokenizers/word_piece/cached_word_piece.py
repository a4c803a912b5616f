"""The eager engine: Google's rules for Python strings. Each distinct segment is analysed once."""

from array import array

from keras_bert_suite.tokenizers.engines import CachedEngine, SegmentCache
from keras_bert_suite.tokenizers.word_piece.vocabulary import CONTINUATION_PREFIX
from keras_bert_suite.tokenizers.word_piece.word_splitting import (
    MAX_CHARACTERS_PER_WORD,
    WordSplitter,
    word_pattern,
)


class CachedWordPiece(CachedEngine):
    """Text to ids, by our own normalization and the WordPiece of the Rust library.

    Natural text repeats its words. A dictionary of the segments seen before answers for all but a
    few percent of them, so the exact rules can stay plain Python. Ids are kept as bytes, because
    bytes can be joined without Python integers. Several threads may call one engine.

    A word that cannot be split, or has more characters than `max_word_length`, is the unknown
    token.
    """

    def __init__(
        self,
        vocabulary,
        unknown_token,
        lowercase,
        strip_accents,
        max_word_length=MAX_CHARACTERS_PER_WORD,
    ):
        from tokenizers.models import WordPiece

        self._splitter = WordSplitter(lowercase, strip_accents)
        self._whole_words = vocabulary.ids
        self._model = WordPiece(
            vocabulary.ids,
            unk_token=unknown_token,
            max_input_chars_per_word=max_word_length,
        )
        self._max_word_length = max_word_length
        self._run_ids = SegmentCache(self._tokenize_run)
        self._segment_ids = SegmentCache(self._analyse_ids)
        self._segment_pieces = SegmentCache(self._analyse)

    def _tokenize(self, text):
        """str -> bytes, int32 ids."""
        # A space always separates segments, and it is found faster than the end of a segment.
        return b"".join(map(self._run_ids.__getitem__, text.split(" ")))

    def _tokenize_run(self, run):
        segments = self._splitter.segment_pattern(run).findall(run)
        return b"".join(map(self._segment_ids.__getitem__, segments))

    def tokenize_with_offsets(self, text):
        """str -> (ids, offsets, word_starts), as `TextTokenizer.tokenize_with_offsets`."""
        ids, offsets, word_starts = [], [], []
        for match in self._splitter.segment_pattern(text).finditer(text):
            base = match.start()
            pieces = self._segment_pieces[match.group()]
            leading = pieces[0][2] if pieces else len(match.group())
            if leading and offsets and offsets[-1][1] == base:
                # Deleted characters belong to the token before them.
                offsets[-1] = (offsets[-1][0], base + leading)
            for id, begins_word, start, end in pieces:
                ids.append(id)
                word_starts.append(begins_word)
                offsets.append((base + start, base + end))
        return ids, offsets, word_starts

    def _analyse_ids(self, segment):
        ids = array("i")
        for word in self._splitter.split_segment(segment):
            whole = self._whole_words.get(word)
            if whole is not None and len(word) <= self._max_word_length:
                ids.append(whole)
            else:
                ids.extend(token.id for token in self._model.tokenize(word))
        return ids.tobytes()

    def _analyse(self, segment):
        """Segment -> tuple of (id, whether it begins a word, start, end).

        Offsets are in characters of the segment. The span of a token has every character that the
        token has a part of, and the deleted characters behind it.
        """
        normalized, origins = self._splitter.normalize(segment)
        origins.append(len(segment))
        pieces = []
        for word in word_pattern().finditer(normalized):
            tokens = self._model.tokenize(word.group())
            start = word.start()
            for token in tokens:
                end = start + len(token.value)
                if len(tokens) == 1:
                    end = word.end()  # The whole word, or the unknown token for it.
                elif start > word.start():
                    end -= len(CONTINUATION_PREFIX)
                # One character may become several tokens.
                after = end
                while origins[after] == origins[end - 1]:
                    after += 1
                pieces.append((token.id, start == word.start(), origins[start], origins[after]))
                start = end
        return tuple(pieces)
