"""Draws trainings, scores, and what a model sees in texts.

Each function returns a `Picture`, which a notebook shows, and writes it as PNG if it gets a path.
"""

import numpy as np

from keras_bert_suite.pictures import MaxNLocator, Picture

TRAIN_COLOR, HELD_OUT_COLOR, GRID_COLOR = "#4477aa", "#cc3311", "#dddddd"


#: The outputs of a pretraining: their names, what they are, and the style of their lines.
PRETRAINING_CURVES = (
    ("mlm", "masked tokens", "-"),
    ("nsp", "pairs", ":"),
    ("sbo", "spans", "-."),
    ("rtd", "replaced tokens", "--"),
    ("forward", "next tokens", "-"),
    ("backward", "previous tokens", ":"),
)


def tidy(axes, grid=True):
    """Leaves out the upper and the right line around the axes, and draws a grid below the data."""
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(color=GRID_COLOR)
        axes.set_axisbelow(True)


def plot_training_curves(history, path=None, held_out_name="test"):
    """Draws loss and accuracy over the epochs.

    Args:
        history: dict of lists, the `history` of Keras' `History`.
        path: str or path of the file, or None.
        held_out_name: str, the name of the validation data.
    """
    figure = Picture(figsize=(9, 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("loss", "accuracy"), strict=True):
        epochs = range(1, len(history[name]) + 1)
        for key, label, color in (
            (name, "training", TRAIN_COLOR),
            (f"val_{name}", held_out_name, HELD_OUT_COLOR),
        ):
            if key in history:
                label = f"{label}, {history[key][-1]:.3f} at the end"
                axes.plot(epochs, history[key], marker="o", linewidth=2, color=color, label=label)
        axes.set(xlabel="epoch", title=name.capitalize())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlim(0.5, len(epochs) + 0.5)
        axes.margins(y=0.1)
        tidy(axes)
        axes.legend(frameon=False)
    return figure.write(path)


def plot_pretraining(rows, path=None):
    """Draws losses, accuracies and the learning rate over the steps.

    Args:
        rows: list of dicts, the lines of a run's log, with numbers or their strings.
        path: str or path of the file, or None.
    """
    steps = [int(row["step"]) for row in rows]
    figure = Picture(figsize=(12, 3.6), layout="constrained")
    loss_axes, accuracy_axes, rate_axes = figure.subplots(1, 3)

    def draw(axes, name, label, color, **style):
        if rows and name in rows[-1]:
            values = [float(row[name]) for row in rows]
            label = f"{label}, {values[-1]:.3f} at the end"
            axes.plot(steps, values, linewidth=2, color=color, label=label, **style)

    for output, label, style in PRETRAINING_CURVES:
        for axes, measure in ((loss_axes, "loss"), (accuracy_axes, "accuracy")):
            name = f"{output}_{measure}"
            draw(axes, name, label, TRAIN_COLOR, linestyle=style)
            draw(axes, f"val_{name}", f"{label}, held out", HELD_OUT_COLOR, linestyle=style)
    rates = [float(row["learning_rate"]) for row in rows]
    rate_axes.plot(steps, rates, linewidth=2, color=TRAIN_COLOR)
    for axes, title in (
        (loss_axes, "Loss"),
        (accuracy_axes, "Accuracy"),
        (rate_axes, "Learning rate"),
    ):
        axes.set(xlabel="step", title=title)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.set_ylim(bottom=0)
        tidy(axes)
        if axes is not rate_axes:
            axes.legend(frameon=False, fontsize="small")
    return figure.write(path)


def plot_label_scores(classes, path=None, counted="rows", title="F1 of each label (texts)"):
    """Draws the F1 of each label, or of each type of entity, as a bar.

    Args:
        classes: dict of label name -> dict with `f1` and the number of its examples.
        path: str or path of the file, or None.
        counted: str, the key of this number: "rows", or "entities" for types of entities.
        title: str.
    """
    figure = Picture(figsize=(6, 1.2 + 0.3 * len(classes)), layout="constrained")
    axes = figure.subplots()
    names = [f"{name} ({scores[counted]})" for name, scores in classes.items()]
    bars = axes.barh(names, [scores["f1"] for scores in classes.values()], color=TRAIN_COLOR)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.invert_yaxis()
    axes.set(xlabel="F1", xlim=(0, 1.1), title=title)
    tidy(axes, grid=False)
    return figure.write(path)


def plot_numbers(targets, predictions, title, path=None):
    """Draws predicted numbers over true numbers.

    Args:
        targets, predictions: float (N,).
        title: str.
        path: str or path of the file, or None.
    """
    figure = Picture(figsize=(4.5, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.scatter(targets, predictions, s=8, alpha=0.4, color=TRAIN_COLOR)
    ends = [min(*targets, *predictions), max(*targets, *predictions)]
    axes.plot(ends, ends, color=GRID_COLOR, zorder=0)
    axes.set(xlabel="true", ylabel="predicted", title=title)
    tidy(axes, grid=False)
    return figure.write(path)


def plot_pairs(scores, names, title, path=None):
    """Draws the scores of two models, with a line between the scores of each seed.

    Args:
        scores: two lists of N floats; the scores at one place are a pair.
        names: two str.
        title: str.
        path: str or path of the file, or None.
    """
    figure = Picture(figsize=(4.5, 3.6), layout="constrained")
    axes = figure.subplots()
    for pair in zip(*scores, strict=True):
        axes.plot(names, pair, marker="o", color=TRAIN_COLOR, alpha=0.4)
    means = [float(np.mean(of_model)) for of_model in scores]
    label = f"means, {means[0]:.3f} and {means[1]:.3f}"
    axes.plot(names, means, marker="o", linewidth=3, color=HELD_OUT_COLOR, label=label)
    axes.set(title=title)
    axes.margins(x=0.3)
    tidy(axes)
    axes.legend(frameon=False)
    return figure.write(path)


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
