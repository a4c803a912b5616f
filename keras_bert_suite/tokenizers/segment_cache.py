"""A cache of tokenized segments of text."""

from abc import ABC, abstractmethod
from array import array

import numpy as np

# These bound the memory of a cache: some fifty megabytes when full.
MAX_CACHED = 1 << 18
MAX_CACHED_LENGTH = 64


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
