"""Training that is shown: a bar while it runs, a table of its epochs when it is done."""

import sys
import time

import keras
from rich.console import Console
from rich.table import Table


def fit(classifier, x, y, **kwargs):
    """Trains a classifier, with Keras' bar on a terminal and a line per epoch elsewhere.

    Args:
        classifier: `TextClassifier`, compiled.
        x, y, **kwargs: arguments of its `fit`.

    Returns:
        (dict of lists as in `History.history`, list of the seconds of each epoch).
    """
    starts, seconds = [], []
    clock = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: starts.append(time.perf_counter()),
        on_epoch_end=lambda epoch, logs: seconds.append(time.perf_counter() - starts[-1]),
    )
    verbose = 1 if sys.stdout.isatty() else 2
    history = classifier.fit(x, y, callbacks=[clock], verbose=verbose, **kwargs)
    return history.history, seconds


def print_epochs(history, seconds, held_out_name):
    """Prints a table with a row per epoch.

    Args:
        history, seconds: what `fit` returned.
        held_out_name: str, what the validation data is called: "dev" or "test".
    """
    columns = {
        "loss": "loss",
        "accuracy": "accuracy",
        "val_loss": f"{held_out_name} loss",
        "val_accuracy": f"{held_out_name} accuracy",
    }
    columns = {name: title for name, title in columns.items() if name in history}
    table = Table("epoch", *columns.values(), "seconds")
    for column in table.columns:
        column.justify = "right"
    for epoch, spent in enumerate(seconds):
        figures = (f"{history[name][epoch]:.4f}" for name in columns)
        table.add_row(str(epoch + 1), *figures, f"{spent:.1f}")
    Console(highlight=False, markup=False).print(table)
