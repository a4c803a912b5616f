"""What training, evaluation and prediction of every task have in common."""

import contextlib
import os
import threading

import keras
import keras_hub
import numpy as np

from keras_bert_suite.data.class_weights import weight_rows
from keras_bert_suite.data.input_dataset import (
    evaluation_batches,
    is_dataset,
    num_batches,
    preprocess_batches,
    training_batches,
)
from keras_bert_suite.data.rows import Rows, map_arrays, read_batch, to_array
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.models.trainability import (
    read_trainability,
    restore_around,
    restore_trainability,
)
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.input_checks import (
    check_held_out,
    check_packed,
    check_preprocessor,
    check_segments,
    default_names,
    order_columns,
)
from keras_bert_suite.tasks.presets import load_preset
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor
from keras_bert_suite.training import (
    Progress,
    WholeEpochs,
    find_training_checkpoint,
    lay_schedule,
    lay_schedule_without_end,
    track_finite_losses,
)

DEFAULT_BATCH_SIZE = 32

#: KerasHub's preprocessors finish building themselves in their first call, in whichever thread.
_KERAS_HUB_LOCK = threading.Lock()


class RowTask:
    """A task whose `fit`, `evaluate` and `predict` take rows in memory, or datasets of batches.

    Rows in memory are batched with rows of similar length, in a fresh order each epoch. `fit`
    lays a schedule of open length over its steps, see `LinearWarmupDecay`.

    List `RowTask` before the KerasHub class in the bases. KerasHub's own `fit` would preprocess
    each batch a second time.

    A task says only what is its own:

    - `encode_labels(labels)`: labels, as users write them, to what the loss takes;
    - `read_class_weights(class_weight)`: the weight of each class, float32 (C,);
    - `serving_outputs(outputs, packed)`: the model's outputs to what a server answers;
    - `arguments_of(checkpoint, arguments)`: what a checkpoint's heads say of the constructor's
      arguments, and the paths of the weights that are new, as regular expressions;
    - `has_new_head(arguments)`: whether these arguments ask for a head that is new.
    """

    input_names = None

    @property
    def preprocessor(self):
        """The layer from texts to the backbone's inputs, or None; checked against it when set."""
        return super().preprocessor

    @preprocessor.setter
    def preprocessor(self, value):
        check_preprocessor(value, self.backbone)
        keras_hub.models.Task.preprocessor.fset(self, value)

    @classmethod
    def from_preset(
        cls,
        preset,
        *,
        load_weights=True,
        sequence_length=None,
        lowercase=None,
        dtype=None,
        skip=(),
        **kwargs,
    ):
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
    def has_new_head(cls, arguments):
        return False

    @classmethod
    def load_keras_preset(cls, loader, load_weights, **arguments):
        """Builds the task of a preset that KerasHub's loader has opened."""
        own_head = not cls.has_new_head(arguments)
        return loader.load_task(cls, load_weights, own_head, preprocessor=None, **arguments)

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
        *,
        sample_weight=None,
        class_weight=None,
        validation_data=None,
        validation_split=None,
        validation_batch_size=None,
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
        progress = Progress(
            first_step=int(getattr(self.optimizer, "iterations", 0)),
            # From the generator that `keras.utils.set_random_seed` sets.
            seed=int(np.random.randint(2**31)),
        )
        if checkpoint is not None:
            progress = checkpoint.find_progress(progress)
        preprocess, preprocess_held_out = self.preprocess_samples, self.preprocess_samples
        if is_dataset(x):
            self._check_dataset(x, y=y, sample_weight=sample_weight, batch_size=batch_size)
            if validation_split:
                raise ValueError(
                    "validation_split needs rows in memory. With a dataset, pass `validation_data`."
                )
        else:
            rows = self._read_rows(x, y, sample_weight, labelled=True)
            if validation_split and validation_data is None:
                rows, held_out = rows.split(validation_split)
                validation_data = self._evaluation_batches(
                    held_out, validation_batch_size or batch_size
                )
                preprocess_held_out = self.preprocess
            x = training_batches(rows, _choose_size(batch_size), shuffle, progress.seed)
            preprocess = self.preprocess
        if class_weight is not None:
            preprocess = _weighted(preprocess, self.read_class_weights(class_weight))
        steps_per_epoch = steps_per_epoch or num_batches(x)
        total = steps_per_epoch and steps_per_epoch * (epochs - initial_epoch)
        lay_schedule(self, progress.first_step, total, callbacks)
        if isinstance(validation_data, (tuple, list)):
            check_held_out(validation_data)
            held_out = self._read_rows(*validation_data, labelled=True)
            validation_data = self._evaluation_batches(
                held_out, validation_batch_size or batch_size
            )
            preprocess_held_out = self.preprocess
        elif validation_batch_size and is_dataset(validation_data):
            self._check_dataset(validation_data, validation_batch_size=validation_batch_size)
        if validation_data is not None:
            validation_steps = validation_steps or num_batches(validation_data)
            # Keras looks at the first batches of a validation before it takes them.
            held_out_total = validation_steps and validation_steps * epochs
            validation_data = preprocess_batches(
                validation_data, preprocess_held_out, held_out_total
            )
        batches = preprocess_batches(x, preprocess, total, progress.batches, shuffle)
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
            return keras.Model.fit(
                self,
                x=batches,
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
            preprocess = self.preprocess_samples
            if is_dataset(x):
                self._check_dataset(x, y=y, sample_weight=sample_weight, batch_size=batch_size)
            else:
                rows = self._read_rows(x, y, sample_weight, labelled=True)
                x = self._evaluation_batches(rows, batch_size, by_length=steps is None)
                preprocess = self.preprocess
            steps = steps or num_batches(x)
            x, y, sample_weight = preprocess_batches(x, preprocess), None, None
        logs = keras.Model.evaluate(
            self, x=x, y=y, sample_weight=sample_weight, steps=steps, **kwargs
        )
        if isinstance(callbacks, WholeEpochs) and callbacks.terminated:
            return {}  # Means over some of the batches.
        return logs

    def predict(self, x=None, batch_size=None, steps=None, **kwargs):
        """Returns the outputs in the order of the N rows; arguments as in `fit`."""
        if is_dataset(x):
            self._check_dataset(x, batch_size=batch_size)
            batches = preprocess_batches(x, self.preprocess_samples)
            return keras.Model.predict(self, batches, steps=steps or num_batches(x), **kwargs)
        rows = self._read_rows(x)
        if not len(rows):
            return keras.tree.map_structure(_no_rows, self.output)
        x, visited = evaluation_batches(rows, _choose_size(batch_size), steps is None)
        batches = preprocess_batches(x, self.preprocess)
        outputs = keras.Model.predict(self, batches, steps=steps or num_batches(x), **kwargs)
        # `steps` may have ended it early; the rows then come as they are.
        order = np.argsort(visited[: len(keras.tree.flatten(outputs)[0])])
        return keras.tree.map_structure(lambda output: output[order], outputs)

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, **kwargs):
        """Takes one step; `x` is a batch of what `fit` takes. See `keras.Model.train_on_batch`."""
        batch = self._read_rows(x, y, sample_weight, labelled=True).as_batch()
        preprocess = self.preprocess
        if class_weight is not None:
            preprocess = _weighted(preprocess, self.read_class_weights(class_weight))
        x, y, weight = keras.utils.unpack_x_y_sample_weight(preprocess(*batch))
        lay_schedule_without_end(self)
        return keras.Model.train_on_batch(self, x, y, weight, **kwargs)

    def test_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """Evaluates one batch of what `fit` takes. See `keras.Model.test_on_batch`."""
        batch = self._read_rows(x, y, sample_weight, labelled=True).as_batch()
        x, y, weight = keras.utils.unpack_x_y_sample_weight(self.preprocess(*batch))
        return keras.Model.test_on_batch(self, x, y, weight, **kwargs)

    def predict_on_batch(self, x):
        """The outputs for one batch of what `fit` takes. See `keras.Model.predict_on_batch`."""
        batch = self._read_rows(x).as_batch()
        x, _, _ = keras.utils.unpack_x_y_sample_weight(self.preprocess(*batch))
        return keras.Model.predict_on_batch(self, x)

    def encode_labels(self, labels):
        """Turns labels, as users write them, into what the loss takes."""
        return labels

    def read_class_weights(self, class_weight):
        """float32 (C,), the weight of each class."""
        raise ValueError(f"{type(self).__name__} has no classes, so class_weight must be None.")

    def preprocess_samples(self, x, y=None, sample_weight=None):
        """Turns a batch of a dataset into what the model takes; also in a graph of TensorFlow."""
        y, sample_weight = map_arrays(to_array, y), map_arrays(to_array, sample_weight)
        y = None if y is None else self.encode_labels(y)
        inputs, names = read_batch(x)
        if isinstance(inputs, tuple):
            if y is not None and self.input_names is None:
                self.input_names = names or default_names(len(inputs))
            inputs = order_columns(inputs, names, self.input_names)
        else:
            check_packed(inputs, self.backbone)
        return self.preprocess(inputs, y, sample_weight)

    def preprocess(self, x, y=None, sample_weight=None):
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

    def pack_texts(self, texts):
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
        if self.preprocessor is None:
            raise ValueError(
                f"{self.name} has no preprocessor to pack texts with. Set `preprocessor`, or pass "
                "packed arrays, a dictionary of token_ids, segment_ids and padding_mask."
            )
        check_preprocessor(self.preprocessor, self.backbone)
        check_segments(len(texts), self.backbone, self.input_names)
        if isinstance(self.preprocessor, SegmentPacker):
            packed = self.preprocessor.pack(*texts)
        else:
            packed = _pack_by_keras_hub(self.preprocessor, texts)
        return {name: packed[name] for name in self.backbone.input}

    def _read_rows(self, x, y=None, sample_weight=None, labelled=False):
        """`Rows` with encoded labels, checked before any of them is used."""
        check_preprocessor(self.preprocessor, self.backbone)
        rows = Rows.read(x, y, sample_weight)
        if labelled and (y is None or not len(rows)):
            raise ValueError(
                f"{type(self).__name__} needs at least one row, and a label for each: pass them "
                f"as `y`, got {len(rows)} rows and y of type {type(y).__name__}."
            )
        if isinstance(rows.inputs, dict):
            check_packed(rows.inputs, self.backbone)
            inputs = rows.inputs
        else:
            check_segments(len(rows.inputs), self.backbone, self.input_names)
            inputs = order_columns(rows.inputs, rows.input_names, self.input_names)
            if labelled and self.input_names is None:
                self.input_names = rows.input_names or default_names(len(inputs))
        labels = None if rows.labels is None else self.encode_labels(rows.labels)
        return Rows(inputs, labels, rows.weights)

    def _check_dataset(self, dataset, **given):
        """Checks that a dataset is one, and comes without arguments that are for rows."""
        check_preprocessor(self.preprocessor, self.backbone)
        if not hasattr(dataset, "__iter__"):
            raise ValueError(
                f"x is of type {type(dataset).__name__}, which holds no data. Wanted texts, packed "
                "arrays, a Grain or tf.data dataset, a keras.utils.PyDataset, a PyTorch DataLoader "
                "or a generator of batches."
            )
        names = [name for name, value in given.items() if value is not None]
        if names:
            raise ValueError(
                f"A dataset, {type(dataset).__name__}, brings its own batches with labels and "
                f"weights. Drop {', '.join(names)}."
            )

    def _evaluation_batches(self, rows, batch_size, by_length=True):
        return evaluation_batches(rows, _choose_size(batch_size), by_length)[0]

    def save(self, filepath, *args, **kwargs):
        """Saves the task as a `.keras` file; see `keras.Model.save`."""
        if os.fspath(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(
                f"{filepath} could not be loaded again: Keras' HDF5 format has no place for a "
                "tokenizer. Save to a name that ends in .keras, or with `save_to_preset`."
            )
        super().save(filepath, *args, **kwargs)

    def save_task_weights(self, filepath):
        """Saves the head alone; KerasHub would save the optimizer's state with it."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def load_task_weights(self, filepath):
        """Loads what `save_task_weights` saved."""
        keras.saving.load_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def _not_task_weights(self):
        optimizer = [self.optimizer] if self.compiled else []
        return [*self.backbone._flatten_layers(), *optimizer]

    def get_config(self):
        config = super().get_config()
        # A `BertBackbone` says it itself.
        if not isinstance(self.backbone, BertBackbone):
            config["backbone_trainability"] = read_trainability(self.backbone)
        config["trainable"] = self.trainable
        config["head_trainability"] = read_trainability(self, without=self.backbone)
        return config

    @classmethod
    def from_config(cls, config):
        # What is loaded is compiled as it was saved, or not at all.
        config = {"compile": False, **config}
        trainability = config.pop("backbone_trainability", None)
        trainable, heads = config.pop("trainable", True), config.pop("head_trainability", {})
        if cls.has_new_head(config):  # What the old head was does not concern it.
            trainable, heads = True, {}
        task = super().from_config(config)
        if trainability is not None:
            restore_trainability(task.backbone, trainability)
        if heads or not trainable:
            restore_around(task, task.backbone, trainable, heads)
        return task


def _choose_size(batch_size):
    return DEFAULT_BATCH_SIZE if batch_size is None else batch_size


def _weighted(preprocess, weights):
    """A function that preprocesses, and weights rows by their class."""

    def preprocess_weighted(x, y=None, sample_weight=None):
        if sample_weight is not None:
            raise ValueError("Pass class_weight or sample_weight, not both.")
        x, y, _ = keras.utils.unpack_x_y_sample_weight(preprocess(x, y))
        return x, y, weight_rows(y, weights)

    return preprocess_weighted


def _pack_by_keras_hub(preprocessor, texts):
    """Packed arrays of lists of strings, or tensors of tensors."""
    if any(map(is_tf_tensor, texts)):
        return preprocessor(texts if len(texts) > 1 else texts[0], y=None)
    texts = tuple(map(list, texts))
    with _KERAS_HUB_LOCK:
        # With `y` it takes a tuple for segments, not for an element of a dataset.
        packed = preprocessor(texts if len(texts) > 1 else texts[0], y=None)
    return {name: np.asarray(array) for name, array in packed.items()}


def _no_rows(output):
    """What `predict` returns of an output when there are no rows."""
    return np.zeros([size or 0 for size in output.shape], output.dtype)
