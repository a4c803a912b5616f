"""What training, evaluation and prediction of every task have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Dtype, Inputs, Labels, PathLike, Patterns, Tensor
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.tasks.batch_sources import (
    evaluation_source,
    hold_out,
    read_data,
    read_samples,
    training_source,
    weighted,
)
from keras_bert_suite.tasks.input_checks import check_preprocessor
from keras_bert_suite.tasks.predicting import predict
from keras_bert_suite.tasks.presets import load_preset
from keras_bert_suite.tasks.resuming import find_progress, resume_run
from keras_bert_suite.tasks.saved_task import SavedTask
from keras_bert_suite.tasks.text_packing import pack_texts
from keras_bert_suite.training import (
    WholeEpochs,
    find_training_checkpoint,
    lay_schedule,
    lay_schedule_without_end,
    track_finite_losses,
)


class RowTask(SavedTask):
    """A task whose `fit`, `evaluate` and `predict` take rows in memory, or datasets of batches.

    Rows in memory are batched with rows of similar length, in a fresh order each epoch. `fit`
    lays a schedule of open length over its steps, see `LinearWarmupDecay`.

    List `RowTask` before the KerasHub class in the bases. KerasHub's own `fit` would preprocess
    each batch a second time.

    A task says only what is its own:

    - `read_rows(x, y, sample_weight)` and `read_batch`: which rows it takes;
    - `encode_labels(labels)`: labels, as users write them, to what the loss takes;
    - `class_weighting(class_weight)`: a function from labels to the weights of their classes;
    - `cut_windows(rows)`: rows to the rows that the model sees;
    - `preprocess(x, y, sample_weight)`: a batch of these to what the model takes;
    - `decode(outputs, rows)`: outputs to what `predict` returns;
    - `serving_outputs(outputs, packed)`: the model's outputs to what a server answers;
    - `arguments_of(checkpoint, arguments)`: what a checkpoint's heads say of the constructor's
      arguments, and the paths of the weights that are new, as regular expressions;
    - `has_new_head(arguments)`: whether these arguments ask for a head that is new;
    - `preprocesses_in_graphs`: whether `cut_windows` and `preprocess` take tensors in a graph of
      TensorFlow.
    """

    input_names = None

    preprocesses_in_graphs = True

    @property
    def preprocessor(self) -> Any:
        """The layer from texts to the backbone's inputs, or None; checked against it when set."""
        return super().preprocessor

    @preprocessor.setter
    def preprocessor(self, value: keras.layers.Layer | None) -> None:
        check_preprocessor(value, self.backbone)
        keras_hub.models.Task.preprocessor.fset(self, value)

    @classmethod
    def from_preset(
        cls,
        preset: PathLike,
        *,
        load_weights: bool = True,
        sequence_length: int | None = None,
        lowercase: bool | None = None,
        dtype: Dtype | None = None,
        skip: Patterns = (),
        **kwargs: Any,
    ) -> Self:
        """Builds the task from a checkpoint.

        Args:
            preset: str or path. Directory of a preset saved by `save_to_preset`, of a Hugging
                Face checkpoint, or of an original Google TF1 checkpoint; `hf://owner/name`; or
                `kaggle://...` for a preset there.
            load_weights: bool, whether to load weights or only the configuration.
            sequence_length: int, the most tokens in a row. Defaults to what the checkpoint says,
                and to the number of its positions.
            lowercase: bool, overrides what the checkpoint says of its vocabulary.
            dtype: string or `keras.DTypePolicy`, such as "mixed_bfloat16".
            skip: regular expression, or several, of weights that keep their values; see
                `checkpoints.load_weights`.
            **kwargs: arguments of the constructor. `preprocessor` takes the place of the
                checkpoint's own, which then need not have a vocabulary.

        Raises:
            TypeError: if an argument is none of the constructor's.
            ValueError: if the checkpoint is not one, lacks a tensor, holds a surplus or
                misshapen one, or lacks a head that is needed.
        """
        return load_preset(
            cls,
            preset,
            load_weights,
            sequence_length=sequence_length,
            lowercase=lowercase,
            dtype=dtype,
            skip=skip,
            **kwargs,
        )

    @classmethod
    def has_new_head(cls, arguments: dict[str, Any]) -> bool:
        return False

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        """Builds the task of a preset that KerasHub's loader has opened."""
        own_head = not cls.has_new_head(arguments)
        return loader.load_task(cls, load_weights, own_head, preprocessor=None, **arguments)

    def compile(
        self, optimizer: str | keras.optimizers.Optimizer, loss: Any, **kwargs: Any
    ) -> None:
        """Configures training; see `keras.Model.compile`. Logged losses are finite means."""
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        if loss is not None:
            track_finite_losses(self)

    def compile_from_config(self, config: Config) -> None:
        """Restores what `compile` was called with; Keras leaves out a `compile` of one's own."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: Inputs = None,
        y: Labels = None,
        batch_size: int | None = None,
        epochs: int = 1,
        *,
        sample_weight: Labels = None,
        class_weight: Mapping[Any, float] | None = None,
        validation_data: Any = None,
        validation_split: float | None = None,
        validation_batch_size: int | None = None,
        shuffle: bool = True,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        initial_epoch: int = 0,
        callbacks: keras.callbacks.Callback | Sequence[keras.callbacks.Callback] | None = None,
        verbose: str | int = "auto",
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the task; see `keras.Model.fit`.

        Args:
            x: texts (a list, an array or a pandas Series), a tuple of these for pairs, a
                DataFrame or dict of text columns, packed arrays by name, or a dataset of
                `(x, y)` batches: Grain, `tf.data`, `keras.utils.PyDataset`, a PyTorch
                `DataLoader` or a generator.
            y: the labels, one a row, as the task takes them; None for a dataset.
            batch_size: int, 32 by default; None for a dataset.
            class_weight: dict, a label or class id -> weight of its rows.
            validation_data: `(x, y)`, `(x, y, sample_weight)` or a dataset.
            validation_split: float, part of the rows, the last ones, to validate on.
            validation_batch_size: int, `batch_size` by default.
            shuffle: bool, whether rows in memory come in a fresh order each epoch.
            callbacks: list of `keras.callbacks.Callback`; with a `TrainingCheckpoint` among
                them a training that was interrupted goes on where it was.
            epochs, sample_weight, steps_per_epoch, validation_steps, initial_epoch, verbose,
                **kwargs: as in Keras.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: before any step is taken, if the rows are in memory and a text is missing
                or a label is one the task does not know.
        """
        checkpoint, callbacks = find_training_checkpoint(callbacks)
        progress = find_progress(self.optimizer, checkpoint)
        data = read_data(self, x, y, sample_weight, batch_size, labelled=True)
        data, held_out = hold_out(
            self, data, validation_data, validation_split, validation_batch_size
        )
        training = training_source(self, data, batch_size, shuffle, progress.seed, class_weight)
        steps_per_epoch = steps_per_epoch or training.num_batches
        total = steps_per_epoch and steps_per_epoch * (epochs - initial_epoch)
        lay_schedule(self, progress.first_step, total, callbacks)
        if held_out is not None:
            source = evaluation_source(self, held_out, validation_batch_size or batch_size)
            validation_steps = validation_steps or source.num_batches
            # Keras looks at the first batches of a validation before it takes them.
            held_out = source.preprocessed(validation_steps and validation_steps * epochs)
        batches = training.preprocessed(total, progress.batches, shuffle)
        self._build_optimizer()
        with resume_run(
            self,
            checkpoint,
            callbacks,
            training.dataset,
            batches,
            initial_epoch,
            epochs=epochs,
            steps=steps_per_epoch,
            verbose=verbose,
        ) as callbacks:
            return keras.Model.fit(
                self,
                x=batches,
                validation_data=held_out,
                validation_steps=validation_steps,
                epochs=epochs,
                steps_per_epoch=steps_per_epoch,
                initial_epoch=initial_epoch + progress.epoch,
                shuffle=False,  # done
                callbacks=callbacks,
                verbose=verbose,
                **kwargs,
            )

    def evaluate(
        self,
        x: Inputs = None,
        y: Labels = None,
        batch_size: int | None = None,
        sample_weight: Labels = None,
        steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the loss and metrics; arguments as in `fit`, others as in `keras.Model`."""
        callbacks = kwargs.get("callbacks")
        if isinstance(callbacks, WholeEpochs) and callbacks.terminated:
            return {}  # `fit` is about to end.
        if not kwargs.get("_use_cached_eval_dataset"):
            data = read_data(self, x, y, sample_weight, batch_size, labelled=True)
            source = evaluation_source(self, data, batch_size, by_length=steps is None)
            steps = steps or source.num_batches
            x, y, sample_weight = source.preprocessed(), None, None
        logs = keras.Model.evaluate(
            self, x=x, y=y, sample_weight=sample_weight, steps=steps, **kwargs
        )
        if isinstance(callbacks, WholeEpochs) and callbacks.terminated:
            return {}  # Means over some of the batches.
        return logs

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the answers in the order of the N rows; arguments as in `fit`.

        With `steps`, the answers of the first `steps` batches of rows.
        """
        return predict(self, x, batch_size, steps, self.decode, **kwargs)

    def train_on_batch(
        self,
        x: Inputs,
        y: Labels = None,
        sample_weight: Labels = None,
        class_weight: Mapping[Any, float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Takes one step; `x` is a batch of what `fit` takes. See `keras.Model.train_on_batch`."""
        preprocess = weighted(self, self.preprocess, class_weight, given=sample_weight)
        x, y, weight = self._prepare_batch(preprocess, x, y, sample_weight, labelled=True)
        lay_schedule_without_end(self)
        self._build_optimizer()
        return keras.Model.train_on_batch(self, x, y, weight, **kwargs)

    def test_on_batch(
        self, x: Inputs, y: Labels = None, sample_weight: Labels = None, **kwargs: Any
    ) -> Any:
        """Evaluates one batch of what `fit` takes. See `keras.Model.test_on_batch`."""
        batch = self._prepare_batch(self.preprocess, x, y, sample_weight, labelled=True)
        return keras.Model.test_on_batch(self, *batch, **kwargs)

    def predict_on_batch(self, x: Inputs) -> Any:
        """The outputs for one batch of what `fit` takes. See `keras.Model.predict_on_batch`."""
        return keras.Model.predict_on_batch(self, self._prepare_batch(self.preprocess, x)[0])

    def _build_optimizer(self):
        """Makes the optimizer's variables; TensorFlow traces a step twice that makes them."""
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def _prepare_batch(self, preprocess, *batch, labelled=False):
        rows = self.cut_windows(read_data(self, *batch, labelled=labelled))
        return keras.utils.unpack_x_y_sample_weight(preprocess(*rows.as_batch()))

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        """`Rows` of what `fit` was given in memory."""
        return Rows.read(x, y, sample_weight)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        """`Rows` of one batch of a dataset, which may be tensors in a graph of TensorFlow."""
        return Rows.read_batch(x, y, sample_weight)

    def encode_labels(self, labels: Labels) -> Labels:
        """Turns labels, as users write them, into what the loss takes."""
        return labels

    def class_weighting(self, class_weight: Mapping[Any, float]) -> Callable[[Tensor], Tensor]:
        """The function from encoded labels to the weights of their classes."""
        raise ValueError(f"{type(self).__name__} has no classes, so class_weight must be None.")

    def cut_windows(self, rows: Rows) -> Rows:
        """Turns rows into the rows that the model sees, such as windows over long texts.

        Args:
            rows: `Rows` with encoded labels.

        Returns:
            `Rows`: `rows` itself, or others. `decode` gets these with the outputs.
        """
        return rows

    def decode(self, outputs: Any, rows: Rows | None) -> Any:
        """Turns outputs into the answers that `predict` returns.

        Args:
            outputs: the arrays of `keras.Model.predict`, in the order of the rows. If
                `cut_windows` has made other rows: a list of arrays, one a row, whose lengths
                differ.
            rows: what `cut_windows` returned; None for a dataset, unless an output of the
                model is of open length.
        """
        return outputs

    def preprocess_samples(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch of a dataset into what the model takes; also in a graph of TensorFlow."""
        return self.preprocess(
            *self.cut_windows(read_samples(self, x, y, sample_weight)).as_batch()
        )

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch with encoded labels into what the model takes.

        Args:
            x: tuple of text columns, packed here; or dict of packed arrays, which passes through.
            y, sample_weight: what the loss takes.

        Returns:
            packed arrays, or a tuple of them, labels and weights.
        """
        if isinstance(x, tuple):
            x = self.pack_texts(x)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack_texts(self, texts: Sequence[Any]) -> dict[str, Tensor]:
        """Texts to the inputs of the backbone, by the preprocessor of this task.

        Args:
            texts: tuple with one entry for each segment: B strings as a list or an array, or a
                TensorFlow string tensor (B,), also in a graph.

        Returns:
            dict of NumPy arrays (B, L), or of TensorFlow tensors for tensors.

        Raises:
            ValueError: if there is no preprocessor, or texts are given for another number of
                segments than the task was trained on.
        """
        return pack_texts(self, texts)
