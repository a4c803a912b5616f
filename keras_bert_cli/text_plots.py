"""Draws what a model sees in texts: thresholds, similarities, attention.

The functions return and write a `Picture`, as those of `plots.py`.
"""

import numpy as np

from .plots import Picture, tidy


def plot_thresholds(labels, probabilities, label_names, thresholds, path=None):
    """Draws the F1 of each label over the threshold of its probability.

    Args:
        labels: bool or 0/1 (N, C), whether a text has a label.
        probabilities: float (N, C).
        label_names: list of C strings.
        thresholds: floats (C,), which get a dot each.
        path: str or path of the file, or None.
    """
    labels, probabilities = np.asarray(labels, bool), np.asarray(probabilities)
    grid = np.linspace(0, 1, 101)
    figure = Picture(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for column, name in enumerate(label_names):
        points = [*grid, thresholds[column]]
        predicted = probabilities[:, column, None] > points
        found = np.sum(predicted & labels[:, column, None], axis=0)
        f1 = 2 * found / np.maximum(predicted.sum(axis=0) + labels[:, column].sum(), 1)
        (line,) = axes.plot(grid, f1[:-1], label=name)
        axes.plot(points[-1], f1[-1], marker="o", color=line.get_color())
    axes.set(xlabel="threshold", ylabel="F1", ylim=(0, 1))
    tidy(axes)
    axes.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure.write(path)


def plot_heat_map(values, row_names, column_names, title=None, path=None):
    """Draws a matrix as colours: similarities of texts, or what each token attends to.

    Args:
        values: float (N, M), or (K, N, M) for K panels side by side.
        row_names: list of N strings, on the left.
        column_names: list of M strings, below.
        title: str, or list of K str.
        path: str or path of the file, or None.
    """
    panels = np.asarray(values)
    panels = panels[None] if panels.ndim == 2 else panels
    titles = [title] * len(panels) if title is None or isinstance(title, str) else title
    height, width = 0.25 * len(row_names), 0.25 * len(column_names)
    longest_row, longest_column = (
        0.08 * max(map(len, names)) for names in (row_names, column_names)
    )
    size = (longest_row + (width + 0.2) * len(panels) + 0.8, height + longest_column + 0.6)
    figure = Picture(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, panel, name in zip(grid, panels, titles, strict=True):
        image = axes.imshow(panel, cmap="Blues", vmin=min(0, panels.min()), vmax=panels.max())
        axes.set_xticks(range(len(column_names)), column_names, rotation=90)
        axes.set_title(name, fontsize="medium")
    grid[0].set_yticks(range(len(row_names)), row_names)
    figure.colorbar(image, ax=list(grid), shrink=0.8)
    return figure.write(path)
