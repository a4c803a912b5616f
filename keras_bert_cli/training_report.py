"""Keeps the figures of a training, and shows a table of its epochs when it is done."""

import json
import time

import keras

from keras_bert_suite.files import atomic_file

from .scores import print_table


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


def print_epochs(rows):
    """Prints a table with a row for each epoch.

    Args:
        rows: list of dicts, the `rows` of an `EpochLog`.
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
        **{f"val_{name}": f"dev {title}" for name, title in titles.items()},
        "val_entity_f1": "dev entity F1",
        "val_exact_match": "dev exact match",
        "val_f1": "dev F1",
    }
    columns = {name: title for name, title in columns.items() if any(name in row for row in rows)}
    print_table(
        ["epoch", *columns.values(), "seconds"],
        (
            [
                row["epoch"],
                *(f"{row[name]:.4f}" if name in row else "" for name in columns),
                f"{row['seconds']:.1f}",
            ]
            for row in rows
        ),
    )
