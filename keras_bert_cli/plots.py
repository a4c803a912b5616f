"""Draws a training: curves and a confusion matrix."""

import numpy as np

try:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise ImportError(
        "Plots need matplotlib, which the extra 'demo' brings: pip install 'keras-bert-suite[demo]'"
    ) from error

from .scores import count_confusions

#: A confusion matrix of more classes shows colours only.
MOST_CLASSES_WITH_NUMBERS = 30

TRAIN_COLOR, HELD_OUT_COLOR, GRID_COLOR = "#4477aa", "#cc3311", "#dddddd"


def plot_training_curves(history, path, held_out_name="test"):
    """Draws loss and accuracy over the epochs, as PNG.

    Args:
        history: dict of lists, the `history` of Keras' `History`.
        path: str or path of the file.
        held_out_name: str, the name of the validation data.
    """
    figure = Figure(figsize=(9, 3.6), layout="constrained")
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
        axes.grid(color=GRID_COLOR)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def plot_pretraining(rows, path):
    """Draws losses, accuracies and the learning rate over the steps, as PNG.

    Args:
        rows: list of dicts, the lines of a run's log, with numbers or their strings.
        path: str or path of the file.
    """
    steps = [int(row["step"]) for row in rows]
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    loss_axes, accuracy_axes, rate_axes = figure.subplots(1, 3)

    def draw(axes, name, label, color, **style):
        if rows and name in rows[-1]:
            values = [float(row[name]) for row in rows]
            label = f"{label}, {values[-1]:.3f} at the end"
            axes.plot(steps, values, linewidth=2, color=color, label=label, **style)

    draw(loss_axes, "mlm_loss", "masked tokens", TRAIN_COLOR)
    draw(loss_axes, "val_mlm_loss", "held out", HELD_OUT_COLOR)
    draw(loss_axes, "nsp_loss", "pairs", TRAIN_COLOR, linestyle=":")
    draw(loss_axes, "val_nsp_loss", "pairs held out", HELD_OUT_COLOR, linestyle=":")
    draw(accuracy_axes, "mlm_accuracy", "masked tokens", TRAIN_COLOR)
    draw(accuracy_axes, "val_mlm_accuracy", "held out", HELD_OUT_COLOR)
    draw(accuracy_axes, "nsp_accuracy", "pairs", TRAIN_COLOR, linestyle=":")
    draw(accuracy_axes, "val_nsp_accuracy", "pairs held out", HELD_OUT_COLOR, linestyle=":")
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
        axes.grid(color=GRID_COLOR)
        axes.spines[["top", "right"]].set_visible(False)
        if axes is not rate_axes:
            axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)


def plot_confusion_matrix(label_ids, predicted_ids, label_names, path):
    """Draws how often each class was predicted as each other class, as PNG.

    Args:
        label_ids, predicted_ids: int (N,), the true and the predicted classes of the rows.
        label_names: list of C strings.
        path: str or path of the file.
    """
    counts = count_confusions(label_ids, predicted_ids, len(label_names))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    numbered = len(label_names) <= MOST_CLASSES_WITH_NUMBERS
    size = 2.6 + 0.9 * min(len(label_names), MOST_CLASSES_WITH_NUMBERS)
    figure = Figure(figsize=(size, size), layout="constrained")
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
    figure.savefig(path, dpi=150)
