"""What the engines of the tokenizers share: a cache of segments of text, and rows of tensors."""

import re
from abc import ABC, abstractmethod
from array import array

import numpy as np

# These bound the memory of a cache: some fifty megabytes when full.
MAX_CACHED = 1 << 18
MAX_CACHED_LENGTH = 64

_SURROGATES = re.compile("[\ud800-\udfff]")


def drop_surrogates(text):
    """str -> str without lone surrogates, which are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("", text)
    return text


def place_characters(text):
    """str -> (the text without lone surrogates; where each of its characters is in `text`)."""
    kept = [index for index, c in enumerate(text) if not "\ud800" <= c <= "\udfff"]
    return "".join(map(text.__getitem__, kept)), kept


class SegmentCache(dict):
    """dict of segment -> its analysis, which is made when the segment is first looked up."""

    def __init__(self, analyse):
        super().__init__()
        self._analyse = analyse

    def __missing__(self, segment):
        analysis = self._analyse(segment)
        if len(segment) <= MAX_CACHED_LENGTH:
            if len(self) >= MAX_CACHED:
                # Frequent segments soon enter the cache again. Segments of an earlier corpus do
                # not.
                self.clear()
            self[segment] = analysis
        return analysis


class CachedEngine(ABC):
    """An eager engine that keeps the ids of a segment as bytes, because bytes are joined fast."""

    def tokenize(self, text):
        """str -> list of int."""
        return array("i", self._tokenize(text)).tolist()

    def tokenize_flat(self, texts):
        """n str -> (ids of all texts in a row, int32; number of ids of each, int64 of n)."""
        rows = list(map(self._tokenize, texts))
        ids = np.frombuffer(bytearray().join(rows), dtype=np.int32)
        return ids, np.array(list(map(len, rows)), dtype=np.int64) // ids.itemsize

    @abstractmethod
    def _tokenize(self, text):
        """str -> bytes, int32 ids."""


class GraphEngine(ABC):
    """An engine of TensorFlow ops, for texts of any rank, dense or ragged."""

    def tokenize(self, inputs):
        """Texts -> ids, int32, ragged, of one rank more. The ids of a scalar are a dense vector."""
        return _map_rows(lambda texts: (self._tokenize_rows(texts),), inputs)[0]

    def tokenize_with_offsets(self, inputs):
        """`(ids, starts, ends, word_starts)`, shaped as by `tokenize`; offsets in bytes, int64."""
        return _map_rows(self._tokenize_rows_with_offsets, inputs)

    @abstractmethod
    def _tokenize_rows(self, texts):
        """Texts (B,) -> ids, ragged (B, None)."""

    @abstractmethod
    def _tokenize_rows_with_offsets(self, texts):
        """Texts (B,) -> (ids, starts, ends, word_starts), ragged (B, None)."""


def _map_rows(function, inputs):
    """Applies `function` (texts (B,) -> tuple of ragged (B, None)) to texts of any rank."""
    import tensorflow as tf

    if not isinstance(inputs, tf.RaggedTensor):
        if inputs.shape.rank is None:
            raise ValueError(
                "The rank of a tensor of texts must be known. Received a tensor of unknown rank; "
                "give it a shape with `tf.ensure_shape`."
            )
        if inputs.shape.rank == 0:
            return tuple(rows.values for rows in function(inputs[tf.newaxis]))
        if inputs.shape.rank == 1:
            return function(inputs)
        inputs = tf.RaggedTensor.from_tensor(inputs, ragged_rank=inputs.shape.rank - 1)
    inputs = inputs.with_row_splits_dtype(tf.int64)
    return tuple(inputs.with_flat_values(rows) for rows in function(inputs.flat_values))
