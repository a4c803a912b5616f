"""Draws the lengths of texts."""

import numpy as np

from keras_bert_suite.annotations import PathLike

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter
except ImportError as error:
    raise ImportError(
        "Plots need matplotlib, which the extra 'demo' brings: pip install 'keras-bert-suite[demo]'"
    ) from error

ROWS_COLOR, ADVICE_COLOR, GRID_COLOR = "#4477aa", "#cc3311", "#dddddd"


def plot_lengths(lengths: np.ndarray, sequence_length: int, path: PathLike) -> None:
    """Draws the number of rows of each length, and the share of rows up to each length, as PNG.

    Args:
        lengths: int (B,), the tokens of each row, ascending.
        sequence_length: int, the length that the picture marks.
        path: str or path of the file.
    """
    kept = np.arange(1, len(lengths) + 1) / len(lengths)
    whole = np.mean(lengths <= sequence_length)
    # A few very long rows would press all others against the axis.
    end = min(max(lengths[-1], 1.5 * sequence_length), 2 * sequence_length)
    hidden = np.count_nonzero(lengths > end)
    # A bar is a whole number of tokens wide. Otherwise some bars would hold more lengths than
    # others.
    bar = int(np.ceil(end / 60))

    figure = Figure(figsize=(7, 5.2), layout="constrained")
    rows, share = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    rows.hist(lengths, bins=np.arange(0, end + bar, bar) + 0.5, color=ROWS_COLOR)
    rows.set(ylabel="rows", title=f"{len(lengths):,} rows by their length")
    rows.text(
        1,
        0.95,
        f"sequence_length={sequence_length}\nkeeps {whole:.1%} whole",
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
            f"not shown: {hidden:,} of up to {lengths[-1]:,} tokens",
            transform=rows.transAxes,
            ha="right",
            va="top",
            backgroundcolor="white",
        )
    share.step([0, *lengths, end], [0, *kept, 1], where="post", color=ROWS_COLOR, lw=2)
    share.plot(sequence_length, whole, "o", color=ADVICE_COLOR)
    share.set(xlabel="tokens, special ones included", ylabel="rows kept whole")
    share.set(xlim=(0, end), ylim=(0, 1.1))
    share.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    for axis in (rows.yaxis, share.xaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    for axes in (rows, share):
        axes.axvline(sequence_length, color=ADVICE_COLOR, linewidth=1.5)
        axes.grid(color=GRID_COLOR)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, format="png")
