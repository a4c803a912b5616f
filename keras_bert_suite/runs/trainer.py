"""Trains and evaluates a model on batches. It knows no task."""

import contextlib
import dataclasses

import keras
import numpy as np

from keras_bert_suite.data.input_dataset import count_steps
from keras_bert_suite.replicas import find_process
from keras_bert_suite.replicas.processes import run_on_leader
from keras_bert_suite.runs.batches import Batches
from keras_bert_suite.runs.joint_start import check_shared, check_shares, start_jointly
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_lengths import padded_for_run
from keras_bert_suite.runs.shown_average import keep_average, put_weights_back, show_average
from keras_bert_suite.runs.slow_bfloat16 import warn_of_slow_bfloat16
from keras_bert_suite.runs.step_lists import keep_step_lists
from keras_bert_suite.runs.trained_weights import TrainedWeights, follow_weights
from keras_bert_suite.runs.training_checkpoint import find_training_checkpoint
from keras_bert_suite.runs.training_facts import describe_training
from keras_bert_suite.runs.weight_lock import lock_weights
from keras_bert_suite.runs.whole_epochs import WholeEpochs
from keras_bert_suite.training import set_schedule_length


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


def find_progress(optimizer, checkpoint):
    """The `Progress` of a run: its newest checkpoint, or its beginning."""
    own = Progress(
        first_step=int(keras.ops.convert_to_numpy(getattr(optimizer, "iterations", 0))),
        # `keras.utils.set_random_seed` sets this generator.
        seed=int(np.random.randint(2**31)),
    )
    # All processes take the order of rows, and the position in the data, from the first process.
    progress = run_on_leader(lambda: own)
    return progress if checkpoint is None else checkpoint.find_progress(progress)


@dataclasses.dataclass
class TrainingRun:
    """The batches of a run. Earlier starts of the same `fit` may have done some of them.

    `steps_per_epoch` and `validation_steps` become the number of the batches if they are None, and
    stay None if the data do not know it. `progress` counts the done ones.
    """

    training: Batches
    validation: Batches | None
    progress: Progress
    epochs: int
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None

    def __post_init__(self):
        self.steps_per_epoch = count_steps(
            self.training.dataset, self.steps_per_epoch, "steps_per_epoch"
        )
        if self.validation is not None:
            self.validation_steps = count_steps(
                self.validation.dataset, self.validation_steps, "validation_steps"
            )

    @property
    def total(self):
        """int, the batches of all epochs; None if their number is unknown."""
        return self.steps_per_epoch and self.steps_per_epoch * (self.epochs - self.initial_epoch)

    @property
    def batches_before(self):
        """int, the batches of the epochs before `initial_epoch`."""
        return self.initial_epoch * (self.steps_per_epoch or 0)

    @property
    def is_finished(self):
        """bool, whether earlier starts have done all batches."""
        return self.total is not None and 0 < self.total <= self.progress.batches

    def train(self, task, checkpoint, callbacks, shuffle, verbose, **kwargs):
        """Trains a compiled task, whose optimizer is built, on the batches that are left."""
        batches = self.training.packed(
            total=self.total, first=self.progress.batches, shuffle=shuffle
        )
        verbose = verbose if find_process().leads else 0
        epochs, first_epoch = self.epochs, self.initial_epoch + self.progress.epoch
        resuming = contextlib.nullcontext()
        if checkpoint is not None:
            callbacks = WholeEpochs(
                checkpoint,
                callbacks,
                add_history=True,
                add_progbar=verbose != 0,
                model=task,
                epochs=self.epochs,
                steps=self.steps_per_epoch,
                verbose=verbose,
            )
            resuming = checkpoint.resume(
                task, self.training.dataset, batches, self.steps_per_epoch, self.initial_epoch
            )
        with resuming:
            if checkpoint is not None and checkpoint.resumes:
                self._begin_again(task, checkpoint, callbacks, verbose, **kwargs)
                if task.stop_training:
                    epochs = min(epochs, first_epoch)
            with keep_step_lists(task, callbacks):
                return keras.Model.fit(
                    task,
                    x=batches,
                    validation_data=self._held_out_batches(),
                    validation_steps=self.validation_steps,
                    epochs=epochs,
                    steps_per_epoch=self.steps_per_epoch,
                    initial_epoch=first_epoch,
                    shuffle=False,  # The rows are shuffled.
                    callbacks=callbacks,
                    verbose=verbose,
                    **kwargs,
                )

    def _begin_again(self, task, checkpoint, callbacks, verbose, validation_freq=1, **_):
        """Begins a resumed training, and ends an epoch that the run before has trained.

        It sets `stop_training` if a callback has ended the training, or now ends it.
        """
        task.stop_training = False
        callbacks.on_train_begin()
        if task.stop_training:
            if verbose and not self.is_finished:
                print(
                    f"The training in {checkpoint.directory} was stopped early by a callback, so "
                    "`fit` trains no more."
                )
        elif self.progress.epoch_is_open:
            epoch = self.initial_epoch + self.progress.epoch - 1
            task.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = dict(task.get_metrics_result())
            if self.validation is not None and is_validated(epoch, validation_freq):
                held_out = validate(
                    task,
                    callbacks,
                    x=self.validation.packed(self.validation_steps),
                    steps=self.validation_steps,
                    return_dict=True,
                )
                logs.update({f"val_{name}": value for name, value in held_out.items()})
            callbacks.on_epoch_end(epoch, logs)

    def _held_out_batches(self):
        if self.validation is None:
            return None
        # Keras looks at the first batches of a validation before it takes them.
        return self.validation.packed(self.validation_steps and self.validation_steps * self.epochs)


def is_validated(epoch, validation_freq):
    """Whether Keras validates an epoch, by the argument `validation_freq` of `fit`."""
    if isinstance(validation_freq, int):
        return (epoch + 1) % validation_freq == 0
    return epoch + 1 in validation_freq


def validate(task, callbacks, **arguments):
    """Evaluates a task within a `fit`. Keras' `fit` hands the `arguments` to `evaluate`.

    The logs are empty if SIGTERM ends the `fit`, since they would be means over some of the
    batches.
    """

    def is_terminated():
        return isinstance(callbacks, WholeEpochs) and callbacks.terminated

    if is_terminated():
        return {}
    with show_average(task):
        logs = keras.Model.evaluate(task, callbacks=callbacks, **arguments)
    return {} if is_terminated() else logs


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
