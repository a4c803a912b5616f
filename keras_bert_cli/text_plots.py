"""Draws what a model sees in texts: similarities, attention, scores of groups of texts.

The functions return and write a `Picture`, as those of `plots.py`.
"""

import numpy as np

from .plots import HELD_OUT_COLOR, TRAIN_COLOR, Picture, tidy


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


def plot_groups(panels, path=None):
    """Draws the scores of groups of examples as bars.

    Args:
        panels: dict of the title of a panel -> dict of the name of a group -> dict of the name of a
            score -> percent. All groups have the same scores, at most two.
        path: str or path of the file, or None.
    """
    most = max(len(groups) for groups in panels.values())
    names = list(next(iter(next(iter(panels.values())).values())))
    size = (5.2 * len(panels), 1.2 + (0.15 + 0.15 * len(names)) * most)
    figure = Picture(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    height = 0.8 / len(names)
    for axes, (title, groups) in zip(grid, panels.items(), strict=True):
        for place, (name, color) in enumerate(
            zip(names, (TRAIN_COLOR, HELD_OUT_COLOR), strict=False)
        ):
            middles = np.arange(len(groups)) + (place - (len(names) - 1) / 2) * height
            widths = [scores[name] for scores in groups.values()]
            bars = axes.barh(middles, widths, height, color=color, label=name)
            axes.bar_label(bars, fmt="%.0f", padding=3, fontsize="small")
        axes.set_yticks(range(len(groups)), list(groups), parse_math=False)
        axes.invert_yaxis()
        axes.set(xlim=(0, 110), title=title, xlabel="percent" if len(names) > 1 else names[0])
        tidy(axes, grid=False)
    if len(names) > 1:
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure.write(path)


def plot_similarities(scores, cosines, title, path=None):
    """Draws the cosine similarities of pairs of texts over the scores that people gave.

    Args:
        scores, cosines: float (N,).
        title: str.
        path: str or path of the file, or None.
    """
    figure = Picture(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.scatter(scores, cosines, s=10, alpha=0.4, color=TRAIN_COLOR)
    axes.set(xlabel="score", ylabel="cosine similarity", title=title)
    tidy(axes)
    return figure.write(path)
