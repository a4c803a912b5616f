"""Trains and evaluates a model on batches. It knows no task."""

import keras

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.data.input_dataset import count_steps
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.replicas import find_process
from keras_bert_suite.runs.batches import read
from keras_bert_suite.runs.joint_start import check_shared, check_shares, start_jointly
from keras_bert_suite.runs.run_lengths import padded_for_run
from keras_bert_suite.runs.shown_average import keep_average, put_weights_back
from keras_bert_suite.runs.slow_bfloat16 import warn_of_slow_bfloat16
from keras_bert_suite.runs.trained_weights import TrainedWeights, follow_weights
from keras_bert_suite.runs.training_checkpoint import find_training_checkpoint
from keras_bert_suite.runs.training_facts import describe_training
from keras_bert_suite.runs.training_run import TrainingRun, find_progress
from keras_bert_suite.runs.weight_lock import lock_weights
from keras_bert_suite.training import set_schedule_length


def hold_out(model, given, validation_data=None, validation_split=None, batch_size=None):
    """Sets the validation rows of a `fit` apart.

    Args:
        model: task.
        given: `Rows` or a dataset, from `read`.
        validation_data, validation_split: as for `Task.fit`.
        batch_size: int, the size of the batches of `validation_data`, or None.

    Returns:
        (`Rows` or a dataset to train on; the same to validate on, or None).
    """
    if validation_split and not isinstance(given, Rows):
        raise ValueError(
            "validation_split needs rows in memory. With a dataset, pass `validation_data`."
        )
    if validation_data is None:
        return given.split(validation_split) if validation_split else (given, None)
    if not isinstance(validation_data, (tuple, list)):
        held_out = read(model, validation_data, labelled=True, validation_batch_size=batch_size)
        return given, held_out
    needs_labels = model.data.labels.are_needed
    sizes = (2, 3) if needs_labels else (1, 2, 3)
    if len(validation_data) not in sizes or isinstance(validation_data[0], (str, bytes)):
        alone = "" if needs_labels else "(x,), "
        raise ValueError(
            f"validation_data must be {alone}(x, y) or (x, y, sample_weight), or a dataset, got "
            f"{with_article(validation_data)} of {len(validation_data)}."
        )
    return given, read(model, *validation_data, labelled=True)


def learn_rows(model, given, verbose):
    """Lets the data of a model note of `Rows` how texts are read after a `fit`, and says so."""
    said = model.data.learn_rows(given) if isinstance(given, Rows) else None
    if said and verbose and find_process().leads:
        print(said)


def fit(
    model,
    make_batches,
    held_out,
    *,
    epochs,
    initial_epoch,
    steps_per_epoch,
    validation_steps,
    callbacks,
    shuffle,
    verbose,
    **kwargs,
):
    """Trains a compiled model, from the start or from a checkpoint, and returns the `History`.

    `make_batches` is a function from the seed of the run to its `Batches`, and `held_out` the
    `Batches` to validate on, or None. Other arguments: see `Task.fit`.
    """
    warn_of_slow_bfloat16(model, training=True)
    put_weights_back(model)
    checkpoint, callbacks = find_training_checkpoint(callbacks)
    progress = find_progress(model.optimizer, checkpoint)
    training = make_batches(progress.seed)
    check_shares(model.optimizer, training.dataset)
    run = TrainingRun(
        training, held_out, progress, epochs, initial_epoch, steps_per_epoch, validation_steps
    )
    if checkpoint is not None:
        checkpoint.recognize(describe_training(model, training, shuffle))
        if run.is_finished and verbose and find_process().leads:
            print(f"The training in {checkpoint.directory} is finished, so `fit` trains no more.")
    note = set_schedule_length(model, progress.first_step, run.total, run.batches_before)
    if note and verbose and not progress.batches and find_process().leads:
        print(note)
    if checkpoint is not None:
        checkpoint.thaw(model)
    follow_weights(model)
    with padded_for_run(model, run, checkpoint):
        start_jointly(model, run)
        callbacks = TrainedWeights.after(callbacks, model)
        history = run.train(model, checkpoint, callbacks, shuffle, verbose, **kwargs)
    keep_average(model)
    return history


def evaluate(model, batches, steps, callbacks, verbose, **kwargs):
    """The loss and metrics of a model over `Batches`. Others: as for `Task.evaluate`."""
    steps = count_steps(batches.dataset, steps, "steps")
    check_shared(model, {"data": batches}, steps=steps)
    with lock_weights(model):
        return keras.Model.evaluate(
            model,
            x=batches.packed(),
            steps=steps,
            callbacks=callbacks,
            verbose=verbose if find_process().leads else 0,
            **kwargs,
        )
