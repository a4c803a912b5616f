"""What each of the two processes of `test_gloo.py` does, one step after the other."""

import os
import signal
from pathlib import Path
from unittest import mock

import keras
import numpy as np
from heads.cases import FIRST, LABELS
from replicas.cases import BATCH_SIZE, EPOCHS, run_case
from small_tasks import make_task

from keras_bert_suite import AdamW, TrainingCheckpoint
from keras_bert_suite.replicas import process_watch
from keras_bert_suite.runs import training_checkpoint

#: Batches of an epoch, and the batch of a run at which a process gets a signal.
EPOCH_STEPS = len(FIRST) // BATCH_SIZE
STOP = EPOCH_STEPS + 1

#: The batches of an epoch, for a dataset.
BATCHES = [
    (FIRST[i : i + BATCH_SIZE], LABELS[i : i + BATCH_SIZE])
    for i in range(0, len(FIRST), BATCH_SIZE)
]

#: Neither the batches until the stop nor those of an epoch are whole steps.
ACCUMULATED = {"gradient_accumulation_steps": 2, "shuffle": False}


def run_steps(rank, folder, names):
    """Yields (name, result) of each step."""
    shorten_waits()
    folder = Path(folder)
    for name in names.split(","):
        yield name, run_case(name, seed=rank)
    yield "other data", catch(lambda: fit(texts=[*FIRST[:-1], FIRST[rank]]))
    yield "other arguments", catch(lambda: fit(epochs=EPOCHS + rank))
    yield "other model", catch(lambda: fit(global_clipnorm=1.0 + rank))
    other_rows = FIRST[rank:], LABELS[rank:]
    yield "other validation data", catch(lambda: fit(validation_data=other_rows))
    yield "uneven batch", catch(lambda: fit(batch_size=3))
    yield "other order", catch(lambda: fit(batches=Reordered(rank)))
    yield "fewer batches", catch(lambda: fit(batches=iter(BATCHES[rank:]), epochs=1))
    yield "other call", catch(lambda: fit() if rank else evaluate(FIRST, LABELS))
    yield "other batch", catch(lambda: build().train_on_batch(*BATCHES[rank]))
    yield "other batches", catch(lambda: build().test_on_batch(*BATCHES[rank]))
    yield "by batch", fit_by_batch(rank)
    yield "same order", fit(batches=Reordered(1))
    yield "evaluated other data", catch(lambda: evaluate(*other_rows))
    yield "evaluated fewer batches", catch(lambda: evaluate(iter(BATCHES[: len(BATCHES) - rank])))
    yield "evaluated", evaluate(iter(BATCHES))
    yield "copies", count_copies(lambda: fit(folder / "copied", epochs=1))
    yield "not finite", catch(lambda: fit(folder / "not finite", [SpoilWeight()]))
    yield "at once", fit(dropout=0.1)
    yield "random state", draw()
    signals = [Signal(STOP, signal.SIGTERM)] if rank == 1 else []
    yield "stopped", fit(folder / "stopped", signals, dropout=0.1)
    yield "gone on", fit(folder / "stopped", dropout=0.1)
    signals = [Signal(STOP, signal.SIGTERM)] if rank == 1 else []
    yield "stopped within a step", fit(folder / "accumulated", signals, **ACCUMULATED)
    yield "gone on within a step", fit(folder / "accumulated", **ACCUMULATED)
    yield "two fits", fit(fits=2, epochs=1, **ACCUMULATED)
    signals = [Signal(STOP, signal.SIGKILL)] if rank == 1 else []
    yield "killed", catch(lambda: fit(folder / "killed", signals))


def run_evaluation(rank, loss):
    """Yields the error of an `evaluate` to which process 1 does not come, or in which it ends."""
    shorten_waits()
    if rank == 1 and loss == "absent":
        return
    callbacks = [Signal(1, signal.SIGKILL)] if rank == 1 and loss == "killed" else []
    data = (unreadable(rank),) if loss == "failed" else (FIRST, LABELS, 1)
    yield "error", catch(lambda: evaluate(*data, callbacks=callbacks))


def shorten_waits():
    process_watch.PERIOD = 0.1
    process_watch.PATIENCE_AFTER_FAILURE = 1.0


def fit(folder=None, callbacks=(), texts=FIRST, batches=None, dropout=0.0, fits=1, **arguments):
    """Trains a classifier, and returns (batches of the run, steps, weights)."""
    names = ("global_clipnorm", "gradient_accumulation_steps")
    optimizer = {name: arguments.pop(name) for name in names if name in arguments}
    task = build(dropout, **optimizer)
    checkpoint = TrainingCheckpoint(folder, every=1) if folder else None
    callbacks = [*callbacks, *([checkpoint] if checkpoint else [])]
    data = (
        {"x": texts, "y": LABELS, "batch_size": BATCH_SIZE} if batches is None else {"x": batches}
    )
    for _ in range(fits):
        task.fit(callbacks=callbacks, **{**data, "epochs": EPOCHS, "verbose": 0, **arguments})
    progress = checkpoint.progress.batches if checkpoint else None
    return progress, int(task.optimizer.iterations), [np.array(w) for w in task.get_weights()]


def fit_by_batch(seed=0):
    """Trains a classifier on each batch, and returns what the calls return and the weights."""
    task = build(seed=seed)
    results = [task.train_on_batch(*batch) for batch in BATCHES]
    results += [task.test_on_batch(*BATCHES[0])]
    return np.array(results), [np.array(w) for w in task.get_weights()]


def unreadable(rank):
    """Yields batches, until the second of process 1 is an error."""
    yield BATCHES[0]
    if rank == 1:
        raise OSError("The disk is gone.")
    yield from BATCHES[1:]


def evaluate(x, y=None, batch_size=None, **arguments):
    """The logs of an evaluation of a classifier that is not trained."""
    return build().evaluate(x, y, batch_size, return_dict=True, verbose=0, **arguments)


def build(dropout=0.0, seed=0, **optimizer):
    """A compiled classifier."""
    keras.utils.set_random_seed(seed)
    task, _ = make_task("texts", "SegmentPacker", dropout=dropout)
    task.compile(AdamW(1e-3, epsilon=1e-4, **optimizer))
    return task


def count_copies(function):
    """How many times this process has copied all variables for a checkpoint."""
    copy = mock.Mock(wraps=training_checkpoint.copy_variables)
    with mock.patch.object(training_checkpoint, "copy_variables", copy):
        function()
    return copy.call_count


def catch(function):
    """The class and the message of an error, or the result if there is none."""
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def draw():
    """A random number of PyTorch's generator, which dropout draws from."""
    import torch

    return float(torch.rand(()))


class Reordered:
    """An iterable of `BATCHES` that begins with one of them."""

    def __init__(self, first):
        self._first = first

    def __iter__(self):
        return iter([*BATCHES[self._first :], *BATCHES[: self._first]])


class SpoilWeight(keras.callbacks.Callback):
    """Makes a weight infinite after the first batch."""

    def on_train_batch_end(self, batch, logs=None):
        weight = self.model.weights[-1]
        weight.assign(np.full(weight.shape, np.inf))


class Signal(keras.callbacks.Callback):
    """Sends this process a signal at the end of a batch, counted from 1."""

    def __init__(self, batch, number):
        super().__init__()
        self._left, self._number = batch, number

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), self._number)

    on_test_batch_end = on_predict_batch_end = on_train_batch_end
