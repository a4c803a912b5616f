"""The eager engine: the `sentencepiece` library."""

import numpy as np

from keras_bert_suite.tokenizers.engines import drop_surrogates, place_characters
from keras_bert_suite.tokenizers.sentence_piece.model_of_engines import find_edges
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import SPACE


class LibrarySentencePiece:
    """Text to ids by an `EngineModel`. Several threads may call one engine."""

    def __init__(self, model):
        from sentencepiece import SentencePieceProcessor

        self._processor = SentencePieceProcessor(model_proto=model.content)
        self._model = model
        self._begins, self._ends = find_edges(model.pieces, model.unknown)
        self._spaces = [len(piece) - len(piece.lstrip(SPACE)) for piece in model.pieces]
        self._is_split = np.zeros(len(model.pieces), bool)
        self._is_split[list(model.splits)] = True

    def tokenize(self, text):
        """str -> list of int."""
        return self.tokenize_flat([text])[0].tolist()

    def tokenize_flat(self, texts):
        """n str -> (ids of all texts in a row, int32; number of ids of each, int64 of n)."""
        texts = [self._prepare(drop_surrogates(text)) for text in texts]
        rows = self._processor.encode(texts, return_type="numpy", num_threads=1)
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        numbers = np.concatenate([np.zeros(0, "int32"), *rows])
        if self._model.splits:
            numbers, lengths = self._split(numbers, lengths)
        return self._model.piece_ids[numbers], lengths

    def _prepare(self, text):
        rule = self._model.case_rule
        return text if rule is None else rule.apply(text)

    def _split(self, numbers, lengths):
        """Replaces pieces by the pieces that the model's `splits` name."""
        places = np.flatnonzero(self._is_split[numbers])
        if not len(places):
            return numbers, lengths
        parts = [[number for number, _ in self._model.splits[n]] for n in numbers[places].tolist()]
        added = np.array([len(each) - 1 for each in parts])
        rows = np.searchsorted(np.cumsum(lengths), places, side="right")
        lengths = lengths + np.bincount(rows, added, len(lengths)).astype(np.int64)
        counts = np.ones(len(numbers), np.int64)
        counts[places] += added
        longer = np.repeat(numbers, counts)
        first = (np.cumsum(counts) - counts)[places]
        for start, each in zip(first.tolist(), parts, strict=True):
            longer[start : start + len(each)] = each
        return longer, lengths

    def tokenize_with_offsets(self, text):
        """str -> (ids, offsets, word_starts), as `TextTokenizer.tokenize_with_offsets`."""
        kept_text, places = place_characters(text)
        places.append(len(text))
        text = self._prepare(kept_text)
        normalized, origins = self._processor.normalize(text, with_offsets=True)
        # Where each normalized character begins, and where the last one ends.
        starts = [places[origin] for origin in origins]
        ends = _find_ends(starts)
        encoded = self._processor.encode(text, return_type="offset_mapping")
        ids, offsets, word_starts, place, after_end = [], [], [], 0, True
        for number, piece in zip(encoded["ids"], encoded["pieces"], strict=True):
            parts = self._model.splits.get(number, ((number, len(piece)),))
            for part, length in parts:
                spaces = self._spaces[part]
                ids.append(int(self._model.piece_ids[part]))
                offsets.append(_span(starts, ends, place + spaces, place + length))
                word_starts.append(after_end or bool(self._begins[part]))
                after_end = bool(self._ends[part])
                place += length
        return ids, offsets, word_starts


def _find_ends(starts):
    """Where each normalized character ends: where the next one from another origin begins."""
    ends = starts[1:]
    for place in reversed(range(len(ends) - 1)):
        if starts[place + 1] == starts[place]:
            ends[place] = ends[place + 1]
    return ends


def _span(starts, ends, first, after):
    """(start, end) of the normalized characters from `first` to before `after`."""
    return (starts[first], ends[after - 1]) if first < after else (starts[first], starts[first])
