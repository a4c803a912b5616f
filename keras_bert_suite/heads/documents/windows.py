"""Packs documents as windows, with the windows of a document side by side."""

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.preprocessing.packing import choose_namespace, padded_length
from keras_bert_suite.preprocessing.segment_packer import SegmentPacker
from keras_bert_suite.preprocessing.windows import choose_query_length


def pack_documents(
    packer: SegmentPacker,
    segments: tuple,
    *,
    max_windows: int,
    stride: int | None = None,
    query_length: int | None = None,
) -> dict[str, Tensor]:
    """Cuts the documents of a batch into windows, and packs them: dict of int32 (B, W, L).

    A document with fewer windows than another document of its batch is filled up with windows
    without tokens, whose `padding_mask` is 0. Where each shape is compiled, the number of windows
    is rounded up to 1, 2, 3, 4, 6, 8, 12 and so on. Errors: see `SegmentPacker.pack_windows`.

    Args:
        segments: tuple of one entry for each segment, lists of B strings or string tensors (B,).
            The last segment is the document. The segments before it are repeated in each window.
        max_windows: int, the maximum number of windows of a document; see `keep_windows`.
        stride, query_length: int, as for `SegmentPacker.pack_windows`. The default stride is the
            room that a window has for the document, so that windows do not overlap.
    """
    num_queries = len(segments) - 1
    room = packer.count_places(len(segments))
    if query_length is None:
        query_length = choose_query_length(room, num_queries)
    if stride is None:
        stride = max(1, room - num_queries * query_length)
    xp = choose_namespace(*segments)
    windows = packer.pack_windows(*segments, stride=stride, query_length=query_length)
    del windows["token_indices"]
    row_ids = windows.pop("row_ids")
    allowed = None if packer.allowed_lengths() is None else _list_allowed_numbers(max_windows)
    places = keep_windows(xp, row_ids, xp.size(segments[-1]), max_windows, allowed)
    is_window = (places >= 0)[:, :, None]
    padding = {"token_ids": packer.tokenizer.pad_token_id}
    taken = xp.maximum(places, 0)
    return {
        name: xp.where(is_window, xp.take(array, taken, axis=0), padding.get(name, 0))
        for name, array in windows.items()
    }


def keep_windows(xp, row_ids, num_rows, max_windows, allowed_numbers=None):
    """Chooses at most `max_windows` windows of each document.

    A document with more windows keeps the first window, the last window, and windows at equal
    distances between them.

    >>> keep_windows(NUMPY, np.array([0, 1, 1, 1, 1, 1]), 2, max_windows=3)
    array([[ 0, -1, -1],
           [ 1,  3,  5]])

    `row_ids`, int32 (N,), has the document of each window, in the order of the B documents. Each
    document has a window. `allowed_numbers` are the allowed values of W, ascending to
    `max_windows`. None sets W to the largest number of windows that a document keeps. The result is
    int32 (B, W), positions in `row_ids`, -1 where a document has no more windows.
    """
    rows = xp.cast(xp.arange(num_rows))
    starts = xp.cast(xp.searchsorted(row_ids, rows, side="left"))
    counts = xp.cast(xp.searchsorted(row_ids, rows, side="right")) - starts
    kept = xp.minimum(counts, max_windows)
    # A batch without documents has an axis of one window.
    most = xp.maximum(xp.max(kept), 1)
    column = xp.cast(xp.arange(padded_length(xp, most, allowed_numbers)))[None, :]
    spread = column * (counts - 1)[:, None] // xp.maximum(kept - 1, 1)[:, None]
    places = starts[:, None] + xp.where((counts > kept)[:, None], spread, column)
    return xp.where(column < kept[:, None], places, -1)


def _list_allowed_numbers(max_windows):
    powers = [1 << n for n in range(max_windows.bit_length())]
    numbers = {*powers, *(power * 3 // 2 for power in powers)}
    return (*sorted(number for number in numbers if number < max_windows), max_windows)
