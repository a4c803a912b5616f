"""Trains and validates a task batch by batch, once the data of a `fit` are read."""

import dataclasses

import keras

from keras_bert_suite.replicas import find_group
from keras_bert_suite.tasks.base.batch_sources import BatchSource
from keras_bert_suite.tasks.base.resuming import resume_run
from keras_bert_suite.training import Progress, WholeEpochs, compile_ahead


@dataclasses.dataclass(frozen=True)
class TrainingRun:
    """The batches of a run, of which earlier starts of the same `fit` may have done some.

    Attributes:
        training: `BatchSource`.
        validation: `BatchSource`, or None.
        progress: `Progress`, what is done.
        epochs, initial_epoch: int, as for `RowTask.fit`.
        steps_per_epoch, validation_steps: int, or None if the data do not know their number.
    """

    training: BatchSource
    validation: BatchSource | None
    progress: Progress
    epochs: int
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None

    @classmethod
    def plan(cls, training, validation, *, steps_per_epoch, validation_steps, **attributes):
        """Plans a run. A number of steps that is None becomes that of the batches."""
        if validation is not None:
            validation_steps = validation_steps or validation.num_batches
        steps_per_epoch = steps_per_epoch or training.num_batches
        return cls(
            training,
            validation,
            steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps,
            **attributes,
        )

    @property
    def total(self):
        """int, the batches of all epochs; None if their number is unknown."""
        return self.steps_per_epoch and self.steps_per_epoch * (self.epochs - self.initial_epoch)

    def train(self, task, checkpoint, callbacks, shuffle, verbose, **kwargs):
        """Trains on the batches that are left.

        Args:
            task: compiled `RowTask` with a built optimizer.
            checkpoint: `TrainingCheckpoint` or None.
            callbacks, shuffle, verbose, **kwargs: as for `RowTask.fit`.

        Returns:
            `keras.callbacks.History`.
        """
        done = self.progress.batches
        batches = self.training.preprocessed(self.total, done, shuffle)
        verbose = verbose if find_group().leads else 0
        with (
            compile_ahead(task, self.training.batches_ahead(self.total, done)),
            resume_run(
                task,
                checkpoint,
                callbacks,
                self.training.dataset,
                batches,
                self.initial_epoch,
                epochs=self.epochs,
                steps=self.steps_per_epoch,
                verbose=verbose,
            ) as callbacks,
        ):
            return keras.Model.fit(
                task,
                x=batches,
                validation_data=self._held_out_batches(),
                validation_steps=self.validation_steps,
                epochs=self.epochs,
                steps_per_epoch=self.steps_per_epoch,
                initial_epoch=self.initial_epoch + self.progress.epoch,
                shuffle=False,  # The rows are shuffled.
                callbacks=callbacks,
                verbose=verbose,
                **kwargs,
            )

    def _held_out_batches(self):
        if self.validation is None:
            return None
        # Keras looks at the first batches of a validation before it takes them.
        return self.validation.preprocessed(
            self.validation_steps and self.validation_steps * self.epochs
        )


def validate(task, callbacks, **arguments):
    """Evaluates a task within a `fit`.

    Args:
        task: `RowTask`.
        callbacks, **arguments: what Keras' `fit` hands to `evaluate`.

    Returns:
        the logs. They are empty if SIGTERM ends the `fit`, since they would be means over some of
        the batches.
    """

    def is_terminated():
        return isinstance(callbacks, WholeEpochs) and callbacks.terminated

    if is_terminated():
        return {}
    logs = keras.Model.evaluate(task, callbacks=callbacks, **arguments)
    return {} if is_terminated() else logs
