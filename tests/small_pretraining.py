"""A pretraining small enough to be killed many times in a test."""

import os

import grain
import keras
import numpy as np
from small_texts import TINY

from keras_bert_suite import AdamW, BertBackbone, LinearWarmupDecay, Pretrainer

B, L, P, STEPS_PER_EPOCH, EPOCHS = 2, 8, 2, 7, 4
STEPS = EPOCHS * STEPS_PER_EPOCH


class SmallBatches(grain.MapDataset):
    """Batch i is a function of i; its first label is i, modulo the size of the vocabulary.

    Args:
        bad: container of the i whose loss is not a number.
    """

    def __init__(self, bad=()):
        super().__init__()
        self._bad = bad

    def __len__(self):
        return STEPS_PER_EPOCH

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.slice(index)
        rng = np.random.default_rng(index)
        ids = rng.integers(5, TINY["vocabulary_size"], (B, L)).astype("int32")
        x = {
            "token_ids": ids,
            "segment_ids": np.zeros_like(ids),
            "padding_mask": np.ones_like(ids),
            "mask_positions": np.sort(rng.integers(0, L, (B, P))).astype("int32"),
        }
        y = rng.integers(0, TINY["vocabulary_size"], (B, P)).astype("int32")
        y[0, 0] = index % TINY["vocabulary_size"]
        weights = np.full((B, P), np.nan if index in self._bad else 1, "float32")
        return x, {"mlm": y}, {"mlm": weights}


class FirstLabel(keras.metrics.Metric):
    """The first label of the last batch: which batch it was."""

    def __init__(self, name="first_label", **kwargs):
        super().__init__(name=name, **kwargs)
        self.last = self.add_variable((), "zeros", dtype="int32", name="last")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.last.assign(keras.ops.cast(y_true[0, 0], "int32"))

    def result(self):
        return keras.ops.copy(self.last)


class StepLog(keras.callbacks.Callback):
    """Appends number, first label and loss so far, to the bit, of each batch to a file."""

    def __init__(self, path, checkpoint):
        super().__init__()
        self._path, self._checkpoint = path, checkpoint

    def on_train_begin(self, logs=None):
        self._write(f"from {self._checkpoint.progress.batches}")

    def on_train_batch_end(self, batch, logs=None):
        loss, label = float(logs["loss"]), int(logs["first_label"])
        self._write(f"{self._checkpoint.progress.batches} {label} {loss.hex()}")

    def _write(self, line):
        with open(self._path, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")


def read_step_log(path):
    """[(batches done at the start, [(batch number, rest of the line)])] of each attempt."""
    attempts = []
    for line in path.read_text().splitlines():
        number, _, rest = line.partition(" ")
        if number == "from":
            attempts.append((int(rest), []))
        else:
            attempts[-1][1].append((int(number), rest))
    return attempts


def build_pretrainer(dtype="float32", dropout=0.1, **optimizer_arguments):
    """A pretrainer, compiled with a schedule that has left its length open."""
    keras.utils.set_random_seed(1)
    backbone = BertBackbone(**{**TINY, "num_layers": 1, "dropout": dropout}, dtype=dtype)
    task = Pretrainer(backbone, next_sentence=False)
    optimizer = AdamW(LinearWarmupDecay(1e-3), **optimizer_arguments)
    task.compile(optimizer, weighted_metrics={"mlm": [FirstLabel()]})
    return task


def all_arrays(task):
    """Every weight, random state and optimizer variable, and what a technique owns."""
    variables = [*task.trainable_variables, *task.non_trainable_variables]
    variables += task.optimizer.variables
    return [np.array(keras.ops.convert_to_numpy(v)) for v in variables]


def save_arrays(task, path):
    """Writes them to a file that is there whole or not at all."""
    with open(f"{path}.tmp", "wb") as file:
        np.savez(file, *all_arrays(task))
    os.replace(f"{path}.tmp", path)


class OfOneStart(keras.callbacks.Callback):
    """A callback whose state is of one start of a training, and in no checkpoint."""

    def get_state(self):
        return None

    def set_state(self, state):
        pass


class At(OfOneStart):
    """Calls `function` at the end of one batch of this `fit`, counted from 1."""

    def __init__(self, batch, function):
        super().__init__()
        self._left, self._function = batch, function

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if self._left == 0:
            self._function()


def interrupt():
    raise KeyboardInterrupt


def fit(task, *callbacks, data=None, **arguments):
    arguments = {"epochs": EPOCHS, "verbose": 0, **arguments}
    return task.fit(data or SmallBatches(), callbacks=list(callbacks), **arguments).history


def assert_same(task, wanted):
    for found, array in zip(all_arrays(task), wanted, strict=True):
        np.testing.assert_array_equal(found, array)


def list_names(directory):
    return sorted(os.listdir(directory))
