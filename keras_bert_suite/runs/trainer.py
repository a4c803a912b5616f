"""Trains and evaluates a model on the rows or the dataset of a user. It knows no task."""

import keras

from keras_bert_suite.data.rows import Rows
from keras_bert_suite.replicas import find_group
from keras_bert_suite.runs.batches import (
    check_one_weight,
    choose_size,
    evaluation_batches,
    training_batches,
)
from keras_bert_suite.runs.joint_start import check_shared, check_shares, start_jointly
from keras_bert_suite.runs.training_checkpoint import find_training_checkpoint
from keras_bert_suite.runs.training_facts import describe_training
from keras_bert_suite.runs.training_run import TrainingRun, find_progress
from keras_bert_suite.runs.weight_lock import lock_weights
from keras_bert_suite.training import set_schedule_length


def fit(
    model,
    data,
    given,
    held_out,
    *,
    batch_size,
    validation_batch_size,
    shuffle,
    weigh,
    lay_out,
    epochs,
    initial_epoch,
    steps_per_epoch,
    validation_steps,
    callbacks,
    verbose,
    **kwargs,
):
    """Trains a compiled model, from the start or from a checkpoint.

    Args:
        model: `keras.Model`, such as a task.
        data: what reads and packs the batches, such as `TextData`.
        given: `Rows`, or a user's dataset.
        held_out: the same to validate on, or None.
        weigh, lay_out: as for `training_batches`.
        Others: as for `Task.fit`.

    Returns:
        `keras.callbacks.History`.
    """
    checkpoint, callbacks = find_training_checkpoint(callbacks)
    progress = find_progress(model.optimizer, checkpoint)
    check_shares(model.optimizer, given, choose_size(batch_size))
    if weigh is not None and isinstance(given, Rows):
        check_one_weight(given.weights)
    training = training_batches(data, given, batch_size, shuffle, progress.seed, weigh, lay_out)
    validation = None
    if held_out is not None:
        validation = evaluation_batches(data, held_out, validation_batch_size or batch_size)
    run = TrainingRun(
        training,
        validation,
        progress=progress,
        epochs=epochs,
        initial_epoch=initial_epoch,
        steps_per_epoch=steps_per_epoch,
        validation_steps=validation_steps,
    )
    if checkpoint is not None:
        checkpoint.recognize(describe_training(model, training, shuffle))
        if run.is_finished and verbose and find_group().leads:
            print(f"The training in {checkpoint.directory} is finished, so `fit` trains no more.")
    set_schedule_length(model, progress.first_step, run.total, callbacks)
    build_optimizer(model)
    start_jointly(model, run)
    return run.train(model, checkpoint, callbacks, shuffle, verbose, **kwargs)


def evaluate(model, data, given, batch_size, steps, callbacks, verbose, **kwargs):
    """The loss and metrics of a model. Arguments: as for `fit` and `Task.evaluate`."""
    batches = evaluation_batches(data, given, batch_size, by_length=steps is None)
    steps = steps or batches.num_batches
    check_shared(model, {"data": batches}, steps=steps)
    with lock_weights(model):
        return keras.Model.evaluate(
            model,
            x=batches.packed(),
            steps=steps,
            callbacks=callbacks,
            verbose=verbose if find_group().leads else 0,
            **kwargs,
        )


def build_optimizer(model):
    """Makes the optimizer's variables. If a step made them, TensorFlow would trace it twice.

    Raises:
        ValueError: if they were made for other weights: layers were frozen or thawed since.
    """
    if model.optimizer is None:
        return
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
        return
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    before = {id(variable): variable for variable in optimizer._trainable_variables}
    now = {id(variable): variable for variable in model.trainable_variables}
    changed = [{**before, **now}[key].path for key in before.keys() ^ now.keys()]
    if changed:
        raise ValueError(
            f"{len(changed)} weights, such as {min(changed)}, were frozen or thawed after the "
            "optimizer was made for the trained weights. Call `compile` again: a new optimizer "
            "begins without moments."
        )
