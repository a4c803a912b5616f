"""Advises a sequence length for texts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

COMMON_LENGTHS = (64, 128, 256, 512)
# Matrix units work on blocks of 8.
MULTIPLE = 8


class LengthAdvice(NamedTuple):
    """The smallest sequence length that is enough for most rows, and the cuts of each length.

    Attributes:
        sequence_length: int, a multiple of 8. A model may have fewer positions.
        cut_rows: dict of sequence length -> the share of rows that it cuts, for the advice, for the
            length of the packer, and for 64, 128, 256 and 512, ascending.
    """

    sequence_length: int
    cut_rows: dict[int, float]


def advise_length(lengths: np.ndarray, coverage: float, own: Sequence[int] = ()) -> LengthAdvice:
    """Makes the `LengthAdvice` for rows of some lengths, int (B,), special tokens included.

    `coverage` is the share of rows that must stay whole, and `own` has further lengths for
    `cut_rows`.
    """
    # This compares shares, because rounding may lift coverage * B above a whole number.
    shares = np.arange(1, len(lengths) + 1) / len(lengths)
    longest = int(np.sort(lengths)[np.searchsorted(shares, coverage)])
    advised = -(-longest // MULTIPLE) * MULTIPLE
    checked = sorted({advised, *own, *COMMON_LENGTHS})
    return LengthAdvice(advised, {n: float(np.mean(lengths > n)) for n in checked})
