"""How long packed texts are, and the sequence length that this asks for."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

COMMON_LENGTHS = (64, 128, 256, 512)
# Matrix units work on blocks of 8.
MULTIPLE = 8

ROWS_COLOR, ADVICE_COLOR, GRID_COLOR = "#4477aa", "#cc3311", "#dddddd"


class LengthCut(NamedTuple):
    """What a sequence length takes away.

    Attributes:
        sequence_length: int.
        rows: float, the share of rows that are cut.
        tokens: float, the share of the texts' tokens that are cut off.
        cost: float, the tokens that remain, relative to those at the advised length. About what
            training costs when the rows of a batch have similar lengths; the attention, a ninth of
            a BERT-base at 512 tokens, grows faster.
    """

    sequence_length: int
    rows: float
    tokens: float
    cost: float


@dataclass(frozen=True, eq=False)
class LengthAdvice:
    """The lengths of some texts, and the smallest sequence length that is enough for them.

    Printed, it is a short table.

    Attributes:
        lengths: int (B,), the tokens of each row, special ones included, ascending.
        coverage: float, the share of rows that is to stay whole.
        sequence_length: int, the advice: the smallest multiple of 8 that does so. A model may have
            fewer positions than that.
        cuts: tuple of `LengthCut`, for the advice and for 64, 128, 256 and 512, ascending.
    """

    lengths: np.ndarray
    coverage: float
    sequence_length: int
    cuts: tuple

    def __str__(self):
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

    def plot(self, path):
        """Draws how many rows have which length, and the share that each length holds, as PNG.

        Args:
            path: str or path of the file.
        """
        try:
            from matplotlib.figure import Figure
            from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter
        except ImportError as error:
            raise ImportError(
                "Plots need matplotlib, which the extra 'demo' brings: "
                "pip install 'keras-bert-suite[demo]'"
            ) from error

        advised = self.sequence_length
        kept = np.arange(1, len(self.lengths) + 1) / len(self.lengths)
        whole = np.mean(self.lengths <= advised)
        # A few very long rows would press all others against the axis.
        end = min(max(self.lengths[-1], 1.5 * advised), 2 * advised)
        hidden = np.count_nonzero(self.lengths > end)
        # Bars of a whole number of tokens each, or some would hold more lengths than others.
        bar = int(np.ceil(end / 60))

        figure = Figure(figsize=(7, 5.2), layout="constrained")
        rows, share = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        rows.hist(self.lengths, bins=np.arange(0, end + bar, bar) + 0.5, color=ROWS_COLOR)
        rows.set(ylabel="rows", title=f"{len(self.lengths):,} rows by their length")
        rows.text(
            1,
            0.95,
            f"sequence_length={advised}\nkeeps {whole:.1%} whole",
            transform=rows.transAxes,
            ha="right",
            va="top",
            color=ADVICE_COLOR,
            backgroundcolor="white",
        )
        if hidden:
            rows.text(
                1,
                0.75,
                f"not shown: {hidden:,} of up to {self.lengths[-1]:,} tokens",
                transform=rows.transAxes,
                ha="right",
                va="top",
                backgroundcolor="white",
            )
        share.step([0, *self.lengths, end], [0, *kept, 1], where="post", color=ROWS_COLOR, lw=2)
        share.plot(advised, whole, "o", color=ADVICE_COLOR)
        share.set(xlabel="tokens, special ones included", ylabel="rows kept whole")
        share.set(xlim=(0, end), ylim=(0, 1.1))
        share.yaxis.set_major_formatter(PercentFormatter(xmax=1))
        for axis in (rows.yaxis, share.xaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
        for axes in (rows, share):
            axes.axvline(advised, color=ADVICE_COLOR, linewidth=1.5)
            axes.grid(color=GRID_COLOR)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=150, format="png")


def advise_length(lengths, num_special_tokens, coverage):
    """Makes the `LengthAdvice` for rows of some lengths.

    Args:
        lengths: int (B,), the tokens of each row, special ones included.
        num_special_tokens: int, how many of them are special.
        coverage: float in (0, 1], the share of rows that is to stay whole.

    Raises:
        ValueError: if `coverage` is not such a share, or there are no rows.
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


def find_length(lengths, coverage):
    """The smallest of the ascending `lengths` that at least a share `coverage` does not exceed.

    >>> find_length([3, 5, 8, 9], 0.75)
    8
    """
    # Compared as shares: coverage * B may be rounded up past a whole number.
    shares = np.arange(1, len(lengths) + 1) / len(lengths)
    return lengths[np.searchsorted(shares, coverage)]
