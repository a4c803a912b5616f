"""Lays the rows of a batch side by side in fewer rows, which are almost full."""

import bisect
from collections.abc import Mapping, Sequence

import numpy as np

#: The share of a packed row that is to hold tokens, where rows may have any width.
FULL = 0.98


def lay_out_sequences(padding_mask: np.ndarray, compiled: bool = False) -> np.ndarray:
    """Finds a place in packed rows for each token of a batch.

    Rows are as narrow as they can be while they are 98% full: attention takes time in proportion to
    the width. Each row of the batch stays in one piece.

    Args:
        padding_mask: int (..., L), 0 on padding. All axes but the last count rows of the batch.
        compiled: bool, whether a step is compiled for each shape. Then the number of packed
            rows is a power of two, and the width is rounded up by at most an eighth, so that there
            are few shapes. The rows are less full, by some percent.

    Returns:
        int32 (R, W), b * L + l of the token at each place, and -1 where there is none.

    Source: Coffman, Garey and Johnson, 1978, An application of bin-packing to multiprocessor
    scheduling (MULTIFIT, by first-fit decreasing, here best-fit).
    """
    width = padding_mask.shape[-1]
    is_token = padding_mask.reshape(-1, width) != 0
    lengths = is_token.sum(axis=1)
    if compiled:
        # Rows of one and a half to three times the longest, so that they fill well.
        most = 2 * int(lengths.sum()) // (3 * int(lengths.max(initial=1)))
        number = 1 << max(0, most.bit_length() - 1)
        width = _find_width(lengths, number)
        width += -width % max(1, (1 << width.bit_length()) // 16)
        rows = fill_rows(lengths, width)
        rows += [[]] * (number - len(rows))
    else:
        rows = _narrow_rows(lengths)
        width = max(int(lengths[row].sum()) for row in rows)
    layout = np.full((len(rows), width), -1, "int32")
    tokens = np.arange(is_token.size, dtype="int32").reshape(is_token.shape)
    for place, row in zip(layout, rows, strict=True):
        filled = np.concatenate([tokens[b][is_token[b]] for b in row]) if row else tokens[0, :0]
        place[: len(filled)] = filled
    return layout


def split_sequences(packed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Splits rows in which another tool has packed several sequences.

    Args:
        packed: dict of arrays (R, W). Its `padding_mask` numbers the sequences of a row from 1, and
            is 0 on padding.

    Returns:
        dict of arrays (N, L) with the same names: a row for each sequence, in the order of the rows
        and of the numbers, padded with 0 to the longest. `padding_mask` is 1 on tokens.

    Raises:
        ValueError: if an array has another shape than `padding_mask`, or there is no sequence.
    """
    numbers = packed["padding_mask"]
    for name, array in packed.items():
        if array.shape != numbers.shape or array.ndim != 2:
            raise ValueError(
                f"{name} must have the shape (R, W) of padding_mask, got {array.shape} and "
                f"{numbers.shape}."
            )
    sequences = [(r, n) for r, row in enumerate(numbers) for n in np.unique(row[row != 0])]
    if not sequences:
        raise ValueError("padding_mask is 0 everywhere, so there are no sequences to split.")
    places = [np.flatnonzero(numbers[r] == n) for r, n in sequences]
    longest = max(map(len, places))
    split = {
        name: np.zeros((len(sequences), longest), array.dtype) for name, array in packed.items()
    }
    for i, ((r, _), columns) in enumerate(zip(sequences, places, strict=True)):
        for name, array in packed.items():
            split[name][i, : len(columns)] = array[r, columns]
    split["padding_mask"] = (split["padding_mask"] != 0).astype(numbers.dtype)
    return split


def fill_rows(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Puts sequences into as few rows as best-fit decreasing finds.

    Args:
        lengths: ints, at most `width`.
        width: int, the tokens that a row holds.

    Returns:
        list of rows. Each is a list of the sequences in it. Empty sequences are left out.
    """
    rows: list[list[int]] = []
    # The room that is left in each row, with the row, ascending.
    rooms: list[tuple[int, int]] = []
    for sequence in np.argsort(-np.asarray(lengths), kind="stable").tolist():
        length = int(lengths[sequence])
        if not length:
            break
        place = bisect.bisect_left(rooms, (length, 0))
        if place == len(rooms):
            room, row = width, len(rows)
            rows.append([])
        else:
            room, row = rooms.pop(place)
        rows[row].append(sequence)
        bisect.insort(rooms, (room - length, row))
    return rows


def _narrow_rows(lengths):
    """The narrowest rows that are `FULL`; if there are none, one row."""
    total, longest = int(lengths.sum()), int(lengths.max(initial=1))
    number = max(1, total // longest)
    while number > 1:
        width = _find_width(lengths, number)
        rows = fill_rows(lengths, width)
        if total >= FULL * len(rows) * width:
            return rows
        number = number * 7 // 8
    return fill_rows(lengths, max(total, 1)) or [[]]


def _find_width(lengths, number):
    """int, a width with which best-fit decreasing needs at most `number` rows, by bisection."""
    low = max(1, int(lengths.max(initial=1)), -(-int(lengths.sum()) // number))
    # So wide that rows which are at least half full are enough.
    high = 2 * low
    while low < high:
        middle = (low + high) // 2
        if len(fill_rows(lengths, middle)) <= number:
            high = middle
        else:
            low = middle + 1
    return low
