"""Measures packed texts, and advises a sequence length for them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from keras_bert_suite.annotations import PathLike

COMMON_LENGTHS = (64, 128, 256, 512)
# Matrix units work on blocks of 8.
MULTIPLE = 8


class LengthCut(NamedTuple):
    """How many rows a sequence length cuts, and how many tokens are lost.

    Attributes:
        sequence_length: int.
        rows: float, the share of rows that are cut.
        tokens: float, the share of the texts' tokens that are cut off.
        cost: float, the number of tokens that remain, relative to the number at the advised length.
            This is about the cost of training when the rows of a batch have similar lengths. The
            cost of attention grows faster, but attention is only a ninth of the computation of
            BERT-base at 512 tokens.
    """

    sequence_length: int
    rows: float
    tokens: float
    cost: float


@dataclass(frozen=True, eq=False)
class LengthAdvice:
    """The lengths of some texts, and the smallest sequence length that is enough for them.

    `print` shows it as a short table.

    Attributes:
        lengths: int (B,), the tokens of each row, special ones included, ascending.
        coverage: float, the share of rows that must stay whole.
        sequence_length: int, the advice: the smallest multiple of 8 that keeps this share of the
            rows whole. A model may have fewer positions.
        cuts: tuple of `LengthCut`, for the advice and for 64, 128, 256 and 512, ascending.
    """

    lengths: np.ndarray
    coverage: float
    sequence_length: int
    cuts: tuple

    def __str__(self) -> str:
        shortest, longest = self.lengths[0], self.lengths[-1]
        whole = np.mean(self.lengths <= self.sequence_length)
        lines = [
            f"{len(self.lengths):,} rows of {shortest:,} to {longest:,} tokens, half of them up to "
            f"{find_length(self.lengths, 0.5):,}.",
            f"sequence_length={self.sequence_length} keeps {whole:.1%} of them whole.",
            "",
            "   length  rows cut  tokens cut   cost",
        ]
        for cut in self.cuts:
            mark = "->" if cut.sequence_length == self.sequence_length else ""
            lines.append(
                f"{mark:2}{cut.sequence_length:7,}{cut.rows:10.1%}{cut.tokens:12.1%}{cut.cost:7.2f}"
            )
        return "\n".join(lines)

    def plot(self, path: PathLike) -> None:
        """Draws the number of rows of each length, and the share of rows up to each length, as PNG.

        Args:
            path: str or path of the file.
        """
        from keras_bert_suite.preprocessing.length_plot import plot_lengths

        plot_lengths(self.lengths, self.sequence_length, path)


def advise_length(lengths: np.ndarray, num_special_tokens: int, coverage: float) -> LengthAdvice:
    """Makes the `LengthAdvice` for rows of some lengths.

    Args:
        lengths: int (B,), the tokens of each row, special ones included.
        num_special_tokens: int, how many tokens of each row are special.
        coverage: float in (0, 1], the share of rows that must stay whole.

    Raises:
        ValueError: if `coverage` is not above 0 and at most 1, or there are no rows.
    """
    if not 0 < coverage <= 1:
        raise ValueError(
            f"coverage must be a share of the rows, above 0 and at most 1 such as 0.99, got "
            f"{coverage}."
        )
    lengths = np.sort(lengths)
    if not len(lengths):
        raise ValueError("A sequence length can be suggested for at least one text, got none.")
    advised = -(-int(find_length(lengths, coverage)) // MULTIPLE) * MULTIPLE

    def cut_at(length):
        kept = np.minimum(lengths, length)
        num_tokens = (lengths - num_special_tokens).sum()
        return LengthCut(
            sequence_length=length,
            rows=float(np.mean(lengths > length)),
            tokens=float((lengths - kept).sum() / max(num_tokens, 1)),
            cost=float(kept.sum() / np.minimum(lengths, advised).sum()),
        )

    cuts = tuple(cut_at(length) for length in sorted({advised, *COMMON_LENGTHS}))
    return LengthAdvice(lengths, coverage, advised, cuts)


def find_length(lengths: np.ndarray, coverage: float) -> int:
    """Finds the smallest length that is enough for at least a share `coverage` of the rows.

    >>> find_length([3, 5, 8, 9], 0.75)
    8

    Args:
        lengths: ints (B,), the tokens of each row, ascending.
        coverage: float in (0, 1].
    """
    # This compares shares, because rounding may lift coverage * B above a whole number.
    shares = np.arange(1, len(lengths) + 1) / len(lengths)
    return lengths[np.searchsorted(shares, coverage)]
