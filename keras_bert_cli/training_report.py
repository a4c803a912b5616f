"""Shows a training: a bar while it runs, and a table of its epochs when it is done."""

import functools
import json
import sys
import threading
import time

import keras
from rich.console import Console
from rich.table import Table

from keras_bert_suite.files import atomic_file

#: What JAX and `compile_ahead` tell `jax.monitoring` of the seconds that went into compiling.
COMPILED = (
    "/jax/core/compile/backend_compile_duration",
    "/keras_bert_suite/waited_for_compiler",
)


class EpochLog(keras.callbacks.Callback):
    """Keeps the figures of every epoch, also of the epochs before a kill.

    Args:
        file: `pathlib.Path` of the JSON file to keep them in, or None.

    Attributes:
        rows: list of dicts with `epoch`, which counts from 1, `seconds`, under JAX the
            `compile_seconds` among them in which it waited for the compiler, and the logs of
            Keras.
    """

    def __init__(self, file=None):
        super().__init__()
        self.file = file
        self.rows = []
        if file is not None and file.is_file():
            self.rows = json.loads(file.read_text(encoding="utf-8"))

    def on_epoch_begin(self, epoch, logs=None):
        self._start = time.perf_counter()
        if keras.config.backend() == "jax":
            self._compiled = _watch_compiler()[0]

    def on_epoch_end(self, epoch, logs=None):
        row = {"epoch": epoch + 1, "seconds": time.perf_counter() - self._start}
        if keras.config.backend() == "jax":
            row["compile_seconds"] = _watch_compiler()[0] - self._compiled
        for name, value in (logs or {}).items():
            row[name] = float(keras.ops.convert_to_numpy(value))
        self.rows = [*(old for old in self.rows if old["epoch"] <= epoch), row]
        if self.file is not None:
            atomic_file.write_json(self.file, self.rows)


@functools.cache
def _watch_compiler():
    """A list of one number, the seconds that this thread has waited for JAX's compiler.

    They count from the first call on.
    """
    import jax

    total, thread = [0.0], threading.current_thread()

    def add(event, seconds, **_):
        if event in COMPILED and threading.current_thread() is thread:
            total[0] += seconds

    jax.monitoring.register_event_duration_secs_listener(add)
    return total


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
    columns = {
        "loss": "loss",
        "accuracy": "accuracy",
        "micro_f1": "micro F1",
        "macro_f1": "macro F1",
        "mean_absolute_error": "error",
        "val_loss": f"{held_out_name} loss",
        "val_accuracy": f"{held_out_name} accuracy",
        "val_micro_f1": f"{held_out_name} micro F1",
        "val_macro_f1": f"{held_out_name} macro F1",
        "val_mean_absolute_error": f"{held_out_name} error",
        "val_entity_f1": f"{held_out_name} entity F1",
        "val_exact_match": f"{held_out_name} exact match",
        "val_f1": f"{held_out_name} F1",
    }
    columns = {name: title for name, title in columns.items() if any(name in row for row in rows)}
    seconds = {"seconds": "seconds"}
    if any("compile_seconds" in row for row in rows):
        seconds["compile_seconds"] = "compiling"
    table = Table("epoch", *columns.values(), *seconds.values())
    for column in table.columns:
        column.justify = "right"
    for row in rows:
        figures = (f"{row[name]:.4f}" if name in row else "" for name in columns)
        times = (f"{row[name]:.1f}" if name in row else "" for name in seconds)
        table.add_row(str(row["epoch"]), *figures, *times)
    Console(highlight=False, markup=False).print(table)
