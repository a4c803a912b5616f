"""Shows a training: a bar while it runs, and a table of its epochs when it is done."""

import json
import sys
import time

import keras
from rich.console import Console
from rich.table import Table

from keras_bert_suite.files import atomic_file


class EpochLog(keras.callbacks.Callback):
    """Keeps the figures of every epoch, also of the epochs before a kill.

    Args:
        file: `pathlib.Path` of the JSON file to keep them in, or None.

    Attributes:
        rows: list of dicts with `epoch`, which counts from 1, `seconds` and the logs of Keras.
    """

    def __init__(self, file=None):
        super().__init__()
        self.file = file
        self.rows = []
        if file is not None and file.is_file():
            self.rows = json.loads(file.read_text(encoding="utf-8"))

    def on_epoch_begin(self, epoch, logs=None):
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        row = {"epoch": epoch + 1, "seconds": time.perf_counter() - self._start}
        for name, value in (logs or {}).items():
            row[name] = float(keras.ops.convert_to_numpy(value))
        self.rows = [*(old for old in self.rows if old["epoch"] <= epoch), row]
        if self.file is not None:
            atomic_file.write_json(self.file, self.rows)


def fit(classifier, x, y, callbacks=(), **kwargs):
    """Trains a classifier, with Keras' bar on a terminal, and otherwise a line for each epoch.

    Args:
        classifier: `TextClassifier`, compiled.
        x, y, callbacks, **kwargs: arguments of its `fit`.
    """
    verbose = 1 if sys.stdout.isatty() else 2
    classifier.fit(x, y, callbacks=list(callbacks), verbose=verbose, **kwargs)


def print_epochs(rows, held_out_name):
    """Prints a table with a row for each epoch.

    Args:
        rows: list of dicts, the `rows` of an `EpochLog`.
        held_out_name: str, the name of the validation data: "dev" or "test".
    """
    titles = {
        "loss": "loss",
        "accuracy": "accuracy",
        "micro_f1": "micro F1",
        "macro_f1": "macro F1",
        "mean_absolute_error": "error",
    }
    columns = {
        **titles,
        **{f"val_{name}": f"{held_out_name} {title}" for name, title in titles.items()},
        "val_entity_f1": f"{held_out_name} entity F1",
        "val_exact_match": f"{held_out_name} exact match",
        "val_f1": f"{held_out_name} F1",
    }
    columns = {name: title for name, title in columns.items() if any(name in row for row in rows)}
    table = Table("epoch", *columns.values(), "seconds")
    for column in table.columns:
        column.justify = "right"
    for row in rows:
        figures = (f"{row[name]:.4f}" if name in row else "" for name in columns)
        table.add_row(str(row["epoch"]), *figures, f"{row['seconds']:.1f}")
    Console(highlight=False, markup=False).print(table)
