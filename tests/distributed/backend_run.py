"""A run of the backend in KERAS_BACKEND, under JAX on all devices; run by the test beside it.

    python backend_run.py FOLDER STOP

FOLDER/checkpoints holds the checkpoints. SIGTERM comes at the end of batch STOP, never if it is 0.
FOLDER/arrays.npz then holds all variables.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

import keras
import numpy as np
from small_pretraining import At, all_arrays, build_pretrainer, fit

from keras_bert_suite import TrainingCheckpoint


def draw_weights(task):
    """Draws the weights by NumPy, since each backend has random numbers of its own."""
    rng = np.random.default_rng(0)
    for weight in task.weights:  # The idle pooler is among them.
        weight.assign(rng.normal(0, 0.1, weight.shape))


def main():
    folder, stop = Path(sys.argv[1]), int(sys.argv[2])
    scope = contextlib.nullcontext()
    if keras.config.backend() == "jax":
        assert len(keras.distribution.list_devices()) == 2
        scope = keras.distribution.DataParallel().scope()
    with scope:
        task, checkpoint = build_pretrainer(dropout=0.0), TrainingCheckpoint(folder / "checkpoints")
        draw_weights(task)
        stops = [At(stop, lambda: os.kill(os.getpid(), signal.SIGTERM))] if stop else []
        fit(task, checkpoint, *stops)
        np.savez(folder / "arrays.npz", checkpoint.progress.batches, *all_arrays(task))


if __name__ == "__main__":
    main()
