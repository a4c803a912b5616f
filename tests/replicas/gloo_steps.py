"""What each of the two processes of `test_gloo.py` does, one step after the other."""

import os
import signal
from pathlib import Path

import keras
import numpy as np
from replicas.cases import BATCH_SIZE, EPOCHS, run_case
from small_tasks import FIRST, LABELS, make_task

from keras_bert_suite import AdamW, TrainingCheckpoint
from keras_bert_suite.replicas import process_watch

#: Batches of an epoch, and the batch of a run at which a process gets a signal.
EPOCH_STEPS = len(FIRST) // BATCH_SIZE
STOP = EPOCH_STEPS + 1

#: Neither the batches until the stop nor those of an epoch are whole steps.
ACCUMULATED = {"gradient_accumulation_steps": 2, "shuffle": False}


def run_steps(rank, folder, names):
    """Yields (name, result) of each step."""
    process_watch.PERIOD = 0.1
    process_watch.PATIENCE_AFTER_FAILURE = 1.0
    folder = Path(folder)
    for name in names.split(","):
        yield name, run_case(name, seed=rank)
    yield "other data", catch(lambda: fit(texts=[*FIRST[:-1], FIRST[rank]]))
    yield "other arguments", catch(lambda: fit(epochs=EPOCHS + rank))
    yield "other model", catch(lambda: fit(global_clipnorm=1.0 + rank))
    yield "uneven batch", catch(lambda: fit(batch_size=3))
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


def fit(folder=None, callbacks=(), texts=FIRST, dropout=0.0, seed=0, fits=1, **arguments):
    """Trains a classifier, and returns (batches of the run, steps, weights)."""
    keras.utils.set_random_seed(seed)
    names = ("global_clipnorm", "gradient_accumulation_steps")
    optimizer = {name: arguments.pop(name) for name in names if name in arguments}
    task, _ = make_task("texts", "SegmentPacker", dropout=dropout)
    task.compile(AdamW(1e-3, epsilon=1e-4, **optimizer))
    checkpoint = TrainingCheckpoint(folder, every=1) if folder else None
    callbacks = [*callbacks, *([checkpoint] if checkpoint else [])]
    arguments = {"batch_size": BATCH_SIZE, "epochs": EPOCHS, "verbose": 0, **arguments}
    for _ in range(fits):
        task.fit(texts, LABELS, callbacks=callbacks, **arguments)
    batches = checkpoint.progress.batches if checkpoint else None
    return batches, int(task.optimizer.iterations), [np.array(w) for w in task.get_weights()]


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


class Signal(keras.callbacks.Callback):
    """Sends this process a signal at the end of a batch of a `fit`, counted from 1."""

    def __init__(self, batch, number):
        super().__init__()
        self._left, self._number = batch, number

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), self._number)
