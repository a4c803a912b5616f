"""Finds the progress of a run, and the callbacks with which `fit` resumes after a kill."""

import contextlib

import keras
import numpy as np

from keras_bert_suite.replicas.processes import run_on_leader
from keras_bert_suite.training import Progress, WholeEpochs


def find_progress(optimizer, checkpoint):
    """The progress of a run: its newest checkpoint, or its beginning.

    Args:
        optimizer: the optimizer of the compiled task, or None.
        checkpoint: `TrainingCheckpoint` or None.

    Returns:
        `Progress`.
    """
    own = Progress(
        first_step=int(keras.ops.convert_to_numpy(getattr(optimizer, "iterations", 0))),
        # `keras.utils.set_random_seed` sets this generator.
        seed=int(np.random.randint(2**31)),
    )
    # All processes take the order of rows, and the place in the data, from the first process.
    progress = run_on_leader(lambda: own)
    return progress if checkpoint is None else checkpoint.find_progress(progress)


@contextlib.contextmanager
def resume_run(task, checkpoint, callbacks, dataset, batches, initial_epoch, **arguments):
    """Restores a run, and yields the callbacks for Keras' `fit`.

    Args:
        task: compiled `RowTask`.
        checkpoint: `TrainingCheckpoint` or None. With None, `callbacks` are yielded as they are.
        callbacks: the argument `callbacks` of `fit`.
        dataset, batches, initial_epoch: as for `TrainingCheckpoint.resume`.
        **arguments: `epochs`, `steps` and `verbose` of the `fit`.
    """
    if checkpoint is None:
        yield callbacks
        return
    callbacks = WholeEpochs(
        checkpoint,
        callbacks,
        add_history=True,
        add_progbar=arguments["verbose"] != 0,
        model=task,
        **arguments,
    )
    with checkpoint.resume(task, dataset, batches, arguments["steps"], initial_epoch):
        yield callbacks
