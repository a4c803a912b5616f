"""Shows and logs a pretraining while it runs."""

import csv
import time

import keras

from keras_bert_suite.files.atomic_file import atomic_file

#: How the scores end that a line of output shows. The log has all.
SHOWN = ("loss", "accuracy", "recall")


class PretrainingReport(keras.callbacks.Callback):
    """Prints a line and writes a row of `log.csv` for each epoch of Keras.

    When a run resumes, the rows of its current epoch and of later epochs are written again. Tokens
    count padding.
    """

    def __init__(self, output, tokens_per_step, steps_per_epoch, total_steps):
        super().__init__()
        self.log_file = output / "log.csv"
        self.tokens_per_step = tokens_per_step
        self.steps_per_epoch = steps_per_epoch
        self.total_steps = total_steps

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._steps = epoch, 0
        self._begin = self._end = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self._steps += 1
        self._end = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        step = (epoch + 1) * self.steps_per_epoch
        rate = self._steps * self.tokens_per_step / max(self._end - self._begin, 1e-9)
        scores = {name: read_number(value) for name, value in (logs or {}).items()}
        learning_rate = read_number(self.model.optimizer.learning_rate)
        row = {"step": step, "tokens/s": round(rate), **scores, "learning_rate": learning_rate}
        rows = [old for old in self.read_log() if int(old["step"]) < step]
        self._write_log([*rows, row])
        figures = (f"{name} {x:.4f}" for name, x in scores.items() if name.endswith(SHOWN))
        line = f"step {step}/{self.total_steps}  {'  '.join(figures)}"
        if self._steps:  # An earlier start may have taken all steps of an epoch.
            minutes = (self.total_steps - step) * self.tokens_per_step / max(rate, 1e-9) / 60
            line += f"  {rate:,.0f} tokens/s  {minutes:,.0f} min left"
        print(line, flush=True)

    def read_log(self):
        """The rows written so far, dicts of str."""
        if not self.log_file.is_file():
            return []
        with open(self.log_file, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def _write_log(self, rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        with atomic_file(self.log_file) as aside:
            with open(aside, "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, names)
                writer.writeheader()
                writer.writerows(rows)


def read_number(value):
    """float of a number or a scalar tensor."""
    return float(keras.ops.convert_to_numpy(value))
