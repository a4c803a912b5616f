"""The common parts of the engines: a cache of segments of text, and rows of tensors."""

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

    #: Table of the characters that are normalized to have a space on both sides, or None.
    spaced: str | None = None

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

    def normalize_with_places(self, texts):
        """Normalizes texts as before added tokens are found.

        Texts (B,) -> (normalized texts; for each of their bytes where it begins, and where it ends
        in the text, int64, ragged (B, None)).
        """
        import tensorflow as tf

        begins = tf.ragged.range(tf.cast(tf.strings.length(texts), tf.int64))
        return texts, begins, begins + 1

    def normalize_token(self, content):
        """str -> str, as `normalize_with_places` does."""
        return content


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


def drop_invalid(texts):
    """Texts without the bytes that are not UTF-8."""
    import tensorflow as tf

    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore", replace_control_characters=False
    )


def place_in(texts, clean, offsets):
    """Offsets into texts without invalid bytes -> into the texts with them, ragged (B, None)."""
    import tensorflow as tf

    def list_places(strings):
        """Ragged (B, None): where each character begins, and where the text ends."""
        _, places = tf.strings.unicode_decode_with_offsets(strings, "UTF-8", errors="ignore")
        length = tf.cast(tf.strings.length(strings), tf.int64)
        return tf.concat([places, length[:, None]], axis=1)

    # The positions of the rows one after the other, ascending.
    length = tf.cast(tf.strings.length(clean), tf.int64)
    base = tf.cumsum(length + 1, exclusive=True)
    known = list_places(clean)
    known = known.values + tf.gather(base, known.value_rowids())
    wanted = offsets.values + tf.gather(base, offsets.value_rowids())
    places = tf.gather(list_places(texts).values, tf.searchsorted(known, wanted))
    return offsets.with_values(places)


def list_ends(origins):
    """Where each byte of normalized rows ends in its text, int64 (T,), for each value of `origins`.

    `origins`, int64, ragged (B, None), has for each byte of a normalized row the byte that it came
    from, and at the end of each row where the last one ends. There it says nothing. All bytes of a
    changed character have the place of its first byte, so each ends at the next different place.
    """
    import tensorflow as tf

    origin, rows = origins.values, origins.value_rowids()
    is_new = (origin[1:] != origin[:-1]) | (rows[1:] != rows[:-1])
    is_new = tf.concat([[True], is_new], axis=0)[: tf.size(origin)]
    rank = tf.cumsum(tf.cast(is_new, tf.int64)) - 1
    distinct = tf.concat([tf.boolean_mask(origin, is_new), [0]], axis=0)
    return tf.gather(distinct, rank + 1)


def look_up_code_points(values, codes):
    """The values of code points, int32, by the ranges of equal values of int (0x110000,)."""
    import tensorflow as tf

    firsts = np.flatnonzero(np.diff(values, prepend=-1)).astype("int32")
    place = tf.searchsorted(tf.constant(firsts), codes, side="right") - 1
    return tf.gather(tf.constant(values[firsts].astype("int32")), place)


def take_neighbour(values, rows, by, outside):
    """The value `by` positions after each position of its row; `outside` beyond the row."""
    import tensorflow as tf

    place = tf.range(tf.size(values)) + by
    inside = (place >= 0) & (place < tf.size(values))
    same = (tf.roll(rows, -by, axis=0) == rows) & inside
    return tf.where(same, tf.roll(values, -by, axis=0), outside)
