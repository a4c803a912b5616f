"""What training, evaluation and prediction of every task have in common."""

import contextlib

import keras
import numpy as np

from keras_bert_suite.data.input_dataset import (
    evaluation_batches,
    gather_columns,
    is_dataset,
    num_batches,
    preprocess_batches,
    split_rows,
    training_batches,
)
from keras_bert_suite.data.row_batches import as_array, map_columns
from keras_bert_suite.training import (
    LinearWarmupDecay,
    Progress,
    WholeEpochs,
    find_training_checkpoint,
    track_finite_losses,
)

DEFAULT_BATCH_SIZE = 32


class RowTask:
    """A task whose `fit`, `evaluate` and `predict` take rows in memory, or datasets of batches.

    Rows in memory are batched with rows of similar length, in a fresh order each epoch. A
    schedule that has left its length open is laid over the steps that `fit` takes. Mixed in
    before a class of `keras_hub.models`; a task that has labels of its own kind overrides
    `encode_labels`.
    """

    def compile(self, optimizer, loss, **kwargs):
        """Configures training; see `keras.Model.compile`. Logged losses are finite means."""
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        if loss is not None:
            track_finite_losses(self)

    def compile_from_config(self, config):
        """Restores what `compile` was called with; Keras leaves out a `compile` of one's own."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        sample_weight=None,
        validation_data=None,
        validation_split=None,
        shuffle=True,
        steps_per_epoch=None,
        validation_steps=None,
        initial_epoch=0,
        callbacks=None,
        verbose="auto",
        **kwargs,
    ):
        """Trains the task; see `keras.Model.fit`.

        Args:
            x: texts, pairs of texts, packed arrays, or a dataset of `(x, y)` batches.
            y: the labels, one a row, as the task takes them; None for a dataset.
            batch_size: int, 32 by default; None for a dataset.
            validation_data: `(x, y)`, `(x, y, sample_weight)` or a dataset.
            validation_split: float, share of the last rows to validate on.
            shuffle: bool, whether rows in memory come in a fresh order each epoch.
            callbacks: list of `keras.callbacks.Callback`; with a `TrainingCheckpoint` among
                them a training that was interrupted goes on where it was.
            epochs, sample_weight, steps_per_epoch, validation_steps, initial_epoch, verbose,
                **kwargs: as in Keras.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: before any step is taken, if the rows are in memory and a label is
                one the task does not know.
        """
        validation_batch_size = batch_size
        checkpoint, callbacks = find_training_checkpoint(callbacks)
        progress = Progress(
            first_step=int(getattr(self.optimizer, "iterations", 0)),
            # From the generator that `keras.utils.set_random_seed` sets.
            seed=int(np.random.randint(2**31)),
        )
        if checkpoint is not None:
            progress = checkpoint.find_progress(progress)
        if not is_dataset(x):
            columns = self._gather_columns(x, y, sample_weight)
            if validation_split and validation_data is None:
                columns, held_out = split_rows(columns, validation_split)
                validation_data = keras.utils.unpack_x_y_sample_weight(held_out)
            x = training_batches(columns, batch_size or DEFAULT_BATCH_SIZE, shuffle, progress.seed)
            y = sample_weight = batch_size = None
        elif validation_split:
            raise ValueError(
                "validation_split needs rows in memory. With a dataset, pass `validation_data`."
            )
        steps_per_epoch = steps_per_epoch or num_batches(x)
        self._span_schedule(progress.first_step, steps_per_epoch, epochs - initial_epoch)
        if isinstance(validation_data, (tuple, list)):
            validation_data, _ = self._evaluation_batches(validation_batch_size, *validation_data)
        if validation_data is not None:
            validation_steps = validation_steps or num_batches(validation_data)
            # Each validation begins anew, after a look at what would come next.
            total = validation_steps and validation_steps * epochs
            validation_data = preprocess_batches(validation_data, self.preprocess_samples, total)
        total = steps_per_epoch and steps_per_epoch * (epochs - initial_epoch)
        batches = preprocess_batches(x, self.preprocess_samples, total, progress.batches)
        resumed = contextlib.nullcontext()
        if checkpoint is not None:
            resumed = checkpoint.resume(self, x, batches, steps_per_epoch, initial_epoch)
            callbacks = WholeEpochs(
                checkpoint,
                callbacks,
                add_history=True,
                add_progbar=verbose != 0,
                model=self,
                verbose=verbose,
                epochs=epochs,
                steps=steps_per_epoch,
            )
        with resumed:
            return super().fit(
                x=batches,
                y=y,
                batch_size=batch_size,
                sample_weight=sample_weight,
                validation_data=validation_data,
                validation_steps=validation_steps,
                epochs=epochs,
                steps_per_epoch=steps_per_epoch,
                initial_epoch=initial_epoch + progress.epoch,
                shuffle=False,  # done
                callbacks=callbacks,
                verbose=verbose,
                **kwargs,
            )

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, steps=None, **kwargs):
        """Returns the loss and metrics; arguments as in `fit`, others as in `keras.Model`."""
        callbacks = kwargs.get("callbacks")
        if isinstance(callbacks, WholeEpochs) and callbacks.terminated:
            return {}  # `fit` is about to end.
        if not kwargs.get("_use_cached_eval_dataset"):
            if not is_dataset(x):
                x, _ = self._evaluation_batches(batch_size, x, y, sample_weight, steps is None)
                y = sample_weight = batch_size = None
            steps = steps or num_batches(x)
            x = preprocess_batches(x, self.preprocess_samples)
        logs = super().evaluate(
            x=x, y=y, batch_size=batch_size, sample_weight=sample_weight, steps=steps, **kwargs
        )
        if isinstance(callbacks, WholeEpochs) and callbacks.terminated:
            return {}  # Means over some of the batches.
        return logs

    def predict(self, x=None, batch_size=None, steps=None, **kwargs):
        """Returns the outputs in the order of the N rows; arguments as in `fit`."""
        rows = None
        if not is_dataset(x):
            x, rows = self._evaluation_batches(batch_size, x, by_length=steps is None)
            batch_size = None
        steps = steps or num_batches(x)
        x = preprocess_batches(x, self.preprocess_samples)
        visited = super().predict(x, batch_size=batch_size, steps=steps, **kwargs)
        if rows is None:
            return visited
        # `steps` may have ended it early; the rows then come as they are.
        order = np.argsort(rows[: len(keras.tree.flatten(visited)[0])])
        return keras.tree.map_structure(lambda output: output[order], visited)

    def encode_labels(self, labels):
        """Turns labels, as users write them, into what the loss takes."""
        return labels

    def _gather_columns(self, x, y=None, sample_weight=None):
        y = None if y is None else self.encode_labels(map_columns(as_array, y))
        return gather_columns(x, y, sample_weight)

    def _evaluation_batches(self, batch_size, x, y=None, sample_weight=None, by_length=True):
        columns = self._gather_columns(x, y, sample_weight)
        return evaluation_batches(columns, batch_size or DEFAULT_BATCH_SIZE, by_length)

    def _span_schedule(self, first_step, steps_per_epoch, epochs):
        """Lays a schedule without a length over the steps that `fit` is about to take."""
        optimizer = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        schedule = getattr(optimizer, "_learning_rate", None)
        if isinstance(schedule, LinearWarmupDecay) and schedule.total_steps is None:
            if steps_per_epoch is None:
                raise ValueError(
                    "The length of this dataset is unknown, and so is that of the learning rate "
                    "schedule. Pass `steps_per_epoch`, or compile with "
                    "LinearWarmupDecay(..., total_steps=...)."
                )
            # Keras hands a schedule the number of batches, also of accumulated ones.
            first_batch = first_step * (optimizer.gradient_accumulation_steps or 1)
            schedule.span(first_batch, steps_per_epoch * epochs)
            # The compiled step holds the former length.
            self.train_function = None

    def save_task_weights(self, filepath):
        """Saves the head alone; KerasHub would save the optimizer's state with it."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def load_task_weights(self, filepath):
        """Loads what `save_task_weights` saved."""
        keras.saving.load_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def _not_task_weights(self):
        optimizer = [self.optimizer] if self.compiled else []
        return [*self.backbone._flatten_layers(), *optimizer]

    @classmethod
    def from_config(cls, config):
        # What is loaded is compiled as it was saved, or not at all.
        return super().from_config({"compile": False, **config})
