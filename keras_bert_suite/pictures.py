"""Pictures that a notebook shows, drawn by matplotlib."""

import io

import numpy as np

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator  # noqa: F401
except ImportError as error:
    raise ImportError("Plots need matplotlib: pip install matplotlib") from error

#: A confusion matrix of more classes shows colours only.
MOST_CLASSES_WITH_NUMBERS = 30


class Picture(Figure):
    """A figure that a notebook shows, also one that has not imported pyplot."""

    def write(self, path=None):
        """Writes a PNG if there is a path, and returns the figure."""
        if path is not None:
            self.savefig(path, dpi=150)
        return self

    def _repr_png_(self):
        buffer = io.BytesIO()
        self.savefig(buffer, dpi=70)
        return buffer.getvalue()


def draw_confusions(counts, label_names, path=None):
    """Draws counts (C, C), the rows of class i that were predicted as class j.

    Args:
        counts: int (C, C), as from `count_confusions`.
        label_names: list of C str.
        path: str or path of the file, or None.
    """
    counts = np.asarray(counts)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    numbered = len(label_names) <= MOST_CLASSES_WITH_NUMBERS
    size = 2.6 + 0.9 * min(len(label_names), MOST_CLASSES_WITH_NUMBERS)
    figure = Picture(figsize=(size, size), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row, column in np.ndindex(counts.shape) if numbered else ():
        axes.text(
            column,
            row,
            f"{counts[row, column]}\n{shares[row, column]:.1%}",
            ha="center",
            va="center",
            color="white" if shares[row, column] > 0.5 else "black",
        )
    ticks = range(len(label_names))
    if numbered:
        axes.set_xticks(ticks, label_names)
        axes.set_yticks(ticks, label_names, rotation=90, va="center")
    accuracy = np.trace(counts) / max(counts.sum(), 1)
    axes.set(xlabel="predicted", ylabel="true", title=f"Accuracy {accuracy:.1%}")
    return figure.write(path)


def draw_scores(names, scores, colors, title, path=None):
    """Draws a bar for each of N scores, from above to below.

    Args:
        names: list of N str.
        scores: list of N float.
        colors: list of N str.
        title: str.
        path: str or path of the file, or None.
    """
    figure = Picture(figsize=(6, 1 + 0.22 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(names)), scores, color=colors)
    # A "$" would begin a formula.
    axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(title=title.replace("$", r"\$"))
    return figure.write(path)


#: The ground of a number that stands on a line.
_OVER_LINES = {"facecolor": "white", "edgecolor": "none", "pad": 1}


def draw_robustness(names, scores, clean, metric, path=None):
    """Draws the scores over each noise as bars, those of several models side by side.

    Args:
        names: list of N str, of the noises and attacks.
        scores: dict of the name of a model -> N floats.
        clean: dict of the name of a model -> float, its score without noise.
        metric: str, the name of the scores.
        path: str or path of the file, or None.
    """
    figure = Picture(
        figsize=(7.5, 1.2 + 0.22 * len(names) * (len(scores) + 0.7)), layout="constrained"
    )
    axes = figure.subplots()
    height = 0.8 / len(scores)
    for place, (name, column) in enumerate(scores.items()):
        middles = np.arange(len(names)) + (place - (len(scores) - 1) / 2) * height
        bars = axes.barh(middles, column, height, color=f"C{place}", label=name)
        axes.axvline(clean[name], color=f"C{place}", linestyle="--", linewidth=1, zorder=0)
        axes.bar_label(bars, fmt="%.3f", padding=3, fontsize=8, bbox=_OVER_LINES)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    shown = [0, *clean.values(), *(score for column in scores.values() for score in column)]
    low, high = min(shown), max(shown)
    axes.set_xlim(low, high + 0.1 * (high - low))  # With room for the numbers.
    axes.set_xlabel(f"{metric}; dashed: without noise")
    if len(scores) > 1:
        figure.legend(loc="outside upper center", ncols=len(scores), frameon=False)
    return figure.write(path)
