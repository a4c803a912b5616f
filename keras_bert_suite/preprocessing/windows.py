"""Cuts documents that are longer than a row into windows, by index arithmetic.

The functions are written once for NumPy and TensorFlow, as in `packing`. A window is a start and a
length in the array of the document's tokens, so windows that overlap share the tokens.
"""


def slide_windows(xp, segments, budget, stride, query_length):
    """Cuts the last segment of each row into windows. The other segments are in each window.

    A row has the windows that begin at 0, `stride`, 2 `stride` and so on, up to the first window
    that reaches the end of the row. A row without tokens has one window.

    Segments are S triples (ids, starts, lengths), as `pack_segments` takes them, for B rows.
    `budget` is the room for all segments of a window, and `query_length` the most tokens to keep of
    each segment before the last. The result is the S triples for N windows, and int32 (N,), the row
    that each window was cut from.
    """
    queries = [(ids, starts, xp.minimum(n, query_length)) for ids, starts, n in segments[:-1]]
    ids, starts, lengths = segments[-1]
    room = xp.zeros_like(lengths) + budget - sum(n for _, _, n in queries)
    beyond_first = xp.maximum(lengths - room, xp.zeros_like(lengths))
    num_windows = (beyond_first + stride - 1) // stride + 1

    row_ids = find_rows(xp, num_windows, xp.sum(num_windows))
    first_window = xp.take(xp.cumsum(num_windows) - num_windows, row_ids)
    begin = (xp.cast(xp.arange(xp.size(row_ids))) - first_window) * stride

    def repeat(values):
        return xp.take(values, row_ids)

    kept = xp.minimum(repeat(lengths) - begin, repeat(room))
    queries = [(ids, repeat(starts), repeat(n)) for ids, starts, n in queries]
    return [*queries, (ids, repeat(starts) + begin, kept)], row_ids


def share_windows(xp, starts, lengths, budget):
    """Cuts texts into overlapping windows, and gives each token to one window.

    Each window begins half of `budget` after the previous window. A window answers for the tokens
    in its middle: its outputs for these tokens are used, because it has the most context on both
    sides of them. The first window of a text also answers for the tokens before its middle, the
    last window for the tokens after its middle. So the answers of all windows, one after the other,
    are the answers for all tokens in their order.

    Args:
        starts, lengths: int32 (B,), where the tokens of each text lie.
        budget: int, the maximum number of tokens in a window.

    Returns:
        `(starts, lengths, row_ids, own_starts, own_ends)`, int32 (N,), for N >= B windows: where
        the tokens of each window lie; the text of the window; where the tokens for which the window
        answers begin and end, counted from the start of the window.
    """
    stride = max(1, (budget + 1) // 2)
    (window,), row_ids = slide_windows(xp, [(None, starts, lengths)], budget, stride, 0)
    _, window_starts, window_lengths = window
    begin = window_starts - xp.take(starts, row_ids)
    is_last = begin + window_lengths >= xp.take(lengths, row_ids)
    margin = (budget - stride) // 2
    own_starts = xp.where(begin > 0, margin, 0)
    own_ends = xp.where(is_last, window_lengths, stride + margin)
    return window_starts, window_lengths, row_ids, own_starts, own_ends


def share_strided_windows(xp, begins, lengths, row_ids):
    """Gives each token to the window that sees the most context around it, by Google's rule.

    The context of a token in a window is the number of tokens before it or after it, whichever is
    smaller, plus a hundredth of the window's length. If two windows see equal context, the earlier
    window gets the token.

    >>> share_strided_windows(NUMPY, np.array([0, 4, 8]), np.array([8, 8, 3]), np.zeros(3, int))
    (array([0, 2, 2]), array([6, 6, 3]))

    Args:
        begins, lengths: int32 (N,), the index of each window's first token within its row, and the
            number of its tokens. The windows of a row are in order, and each window ends after the
            window before it.
        row_ids: int32 (N,), the row of each window.

    Returns:
        `(own_starts, own_ends)`, int32 (N,), where the tokens that a window gets begin and end,
        counted from the start of the window.

    Source: `_check_is_max_context` of google-research/bert's run_squad.py.
    """
    has_next = xp.cast(row_ids[1:] == row_ids[:-1])
    # `meeting` is the first token that has more context in the next window than in this window.
    # Everything is multiplied by 100, so that the hundredths of lengths are whole numbers.
    last, bonus = begins + lengths - 1, lengths[:-1] - lengths[1:]
    meeting = (100 * (last[:-1] + begins[1:]) + bonus) // 200 + 1
    ends = xp.where(has_next > 0, meeting, last[:-1] + 1)
    starts = xp.where(has_next > 0, meeting, begins[1:])
    own_starts = xp.concat([begins[:1], starts]) - begins
    own_ends = xp.concat([ends, last[-1:] + 1]) - begins
    return own_starts, own_ends


def choose_stride(sequence_length, budget, num_queries, stride=None, query_length=None):
    """Chooses the stride and the query length that are None, and checks both.

    >>> choose_stride(sequence_length=384, budget=381, num_queries=1)
    (128, 64)

    A row has `sequence_length` places, of which `budget` are for tokens of texts, and `num_queries`
    texts before the document. Errors: see `SegmentPacker.pack_windows`.
    """
    if query_length is None:
        query_length = choose_query_length(budget, num_queries)
    room = budget - query_length * num_queries
    if query_length < 1 or room < 1:
        raise ValueError(
            f"query_length must be from 1 to {(budget - 1) // max(num_queries, 1)}, so that it "
            f"leaves room for the document, got {query_length}."
        )
    if stride is None:
        # A third of the row, as Google's 128 of 384, but at most half of the room.
        stride = max(1, min(sequence_length // 3, room // 2))
    if not 1 <= stride <= room:
        raise ValueError(
            f"stride must be from 1 to {room}, the room for the document that query_length="
            f"{query_length} leaves of {budget} tokens, got {stride}."
        )
    return stride, query_length


def choose_query_length(budget, num_queries):
    """64 as in Google's code; in a short row less, so that a third is left for the document.

    >>> choose_query_length(budget=381, num_queries=1), choose_query_length(29, num_queries=1)
    (64, 19)
    """
    return max(1, min(64, 2 * budget // (3 * max(num_queries, 1))))


def number_tokens(xp, segment):
    """The index of each token within its row: int32, in the order of `ids`.

    >>> number_tokens(NUMPY, (np.array([7, 8, 9]), np.array([0, 2, 2]), np.array([2, 0, 1])))
    array([0, 1, 0])

    The rows (ids, starts, lengths) lie one after the other.
    """
    ids, starts, lengths = segment
    size = xp.shape(ids)[0]
    position = xp.cast(xp.arange(size))
    return position - xp.take(starts, find_rows(xp, lengths, size))


def find_rows(xp, lengths, total):
    """The row of each of `total` = sum(`lengths`) elements: [2, 0, 1] -> [0, 0, 2]."""
    # `tf.repeat` would make a grid of all rows by the longest row.
    position = xp.cast(xp.arange(total))
    return xp.cast(xp.searchsorted(xp.cumsum(lengths), position, side="right"))
