"""The common base of tasks: their training, evaluation and prediction."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Dtype, Inputs, Labels, PathLike, Patterns, Tensor
from keras_bert_suite.argument_checks import check_further_arguments
from keras_bert_suite.data.input_dataset import unpack_batch
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.layers import PackedSequences
from keras_bert_suite.preprocessing.keras_hub_packer import find_segment_packer
from keras_bert_suite.replicas import (
    count_replicas,
    drop_copies,
    find_group,
    find_groups,
    in_scope_of_model,
    take_first_share,
    whole_batches,
)
from keras_bert_suite.replicas.process_watch import ProcessWatch
from keras_bert_suite.replicas.processes import summed_variables
from keras_bert_suite.tasks.base.batch_sources import (
    choose_size,
    evaluation_source,
    hold_out,
    read_data,
    read_samples,
    training_source,
    weighted,
)
from keras_bert_suite.tasks.base.compiled_forward import compile_forward
from keras_bert_suite.tasks.base.half_precision import warn_if_emulated
from keras_bert_suite.tasks.base.input_checks import (
    check_layer_names,
    check_preprocessor,
    check_segments,
    default_names,
    order_columns,
)
from keras_bert_suite.tasks.base.joint_start import check_data, check_strategy, start_jointly
from keras_bert_suite.tasks.base.predicting import predict
from keras_bert_suite.tasks.base.presets import FURTHER_ARGUMENTS, load_checkpoint, load_preset
from keras_bert_suite.tasks.base.resuming import find_progress, resume_run
from keras_bert_suite.tasks.base.saved_task import SavedTask
from keras_bert_suite.tasks.base.sequence_packing import check_can_pack_sequences
from keras_bert_suite.tasks.base.split_steps import SplitSteps
from keras_bert_suite.tasks.base.text_packing import pack_texts
from keras_bert_suite.training import (
    WholeEpochs,
    compile_ahead,
    find_training_checkpoint,
    forget_metrics,
    lay_schedule,
    lay_schedule_without_end,
    list_callbacks,
    read_loss,
    sum_before_clipping,
    take_class_ids,
    track_finite_losses,
)


class RowTask(SplitSteps, PackedSequences, SavedTask):
    """A task whose `fit`, `evaluate` and `predict` take rows in memory, or datasets of batches.

    Rows in memory are batched with rows of similar length, in a fresh order each epoch. `fit`
    lays a schedule of open length over its steps, see `LinearWarmupDecay`.

    List `RowTask` before the KerasHub class in the bases. KerasHub's own `fit` would preprocess
    each batch a second time.

    A task overrides these hooks where it differs from the others:

    - `read_rows(x, y, sample_weight)` and `read_batch` read the rows that the task takes, and
      `arrange_columns(inputs, names, labelled)` puts their texts in order;
    - `needs_labels` says whether `fit` and `evaluate` need labels, and `has_fixed_labels` whether
      the labels of two batches differ only in the number of rows;
    - `encode_labels(labels)` turns labels, as users write them, into labels for the loss;
    - `returns_logits` says whether the outputs are logits, and `read_loss(loss)` makes a loss, as
      users write it, fit the labels and the outputs;
    - `class_weighting(class_weight)` makes a function from labels to the weights of their classes;
    - `cut_windows(rows)` turns rows into the rows that the model sees;
    - `preprocess(x, y, sample_weight)` turns a batch of these rows into inputs of the model, and
      `preprocess_training` a batch of `fit` or `evaluate`, if it differs;
    - `decode(outputs, rows)` turns outputs of the model into the result of `predict`;
    - `serving_outputs(outputs, packed)` turns outputs of the model into the answers of a server;
    - `arguments_of(checkpoint, arguments)` completes the constructor's arguments from the heads of
      a checkpoint, and names the weights that are new, by regular expressions of their paths;
    - `has_new_head(arguments)` says whether these arguments ask for a new head;
    - `text_ranks` are the ranks of the texts of a batch, if they are not all 1;
    - `needs_segment_packer` says whether the task must know where in a text each token was;
    - `preprocesses_in_graphs` says whether `cut_windows` and `preprocess` take tensors in graphs of
      TensorFlow.
    """

    input_names = None

    #: Arguments of the backbone that `from_preset` sets, whatever the checkpoint says.
    backbone_arguments: Mapping[str, Any] = {}

    #: Which tokens are global in a `LongformerBackbone`, as `from_preset` sets it for a new task.
    global_tokens = "first_token"

    needs_labels = True

    has_fixed_labels = False

    preprocesses_in_graphs = True

    text_ranks: tuple[int, ...] | None = None

    needs_segment_packer = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_layer_names(self)
        super().__init__(*args, **kwargs)

    def check_further_arguments(self, arguments: Mapping[str, Any]) -> None:
        """Raises TypeError if a constructor got an argument in `**kwargs` that nothing reads.

        A constructor of a task calls this method first, so that a misspelt argument is the first
        error.
        """
        check_further_arguments(type(self), arguments, FURTHER_ARGUMENTS)

    @property
    def returns_logits(self) -> bool:
        """bool, whether outputs are logits, and not probabilities."""
        return True

    @property
    def preprocessor(self) -> Any:
        """The layer from texts to the backbone's inputs, or None. It is checked when it is set.

        A task that `needs_segment_packer` replaces a preprocessor of KerasHub by a `SegmentPacker`
        with the same tokens, if its tokenizer is WordPiece, RoBERTa's byte pairs, or ALBERT's or
        XLM-RoBERTa's SentencePiece.
        """
        return super().preprocessor

    @preprocessor.setter
    def preprocessor(self, value: keras.layers.Layer | None) -> None:
        check_preprocessor(value, self.backbone)
        if self.needs_segment_packer:
            value = find_segment_packer(value) or value
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
            preset: str or path: the directory of a preset saved by `save_to_preset`, of a
                Hugging Face checkpoint, or of an original Google TF1 checkpoint;
                `hf://owner/name`; or `kaggle://...` for a preset on Kaggle.
            load_weights: bool, whether to load weights or only the configuration.
            sequence_length: int, the most tokens in a row. None takes the length that the
                checkpoint names, or the number of its positions if it names no length.
            lowercase: bool, replaces the setting of the checkpoint.
            dtype: string or `keras.DTypePolicy`, such as "mixed_bfloat16".
            skip: regular expression, or several, for the paths of weights that are not loaded and
                keep their values; see `checkpoints.load_weights`.
            **kwargs: arguments of the constructor. With `preprocessor`, the checkpoint needs no
                vocabulary.

        Raises:
            TypeError: if the constructor has no such argument.
            ValueError: if `preset` is no checkpoint, or if the checkpoint lacks a tensor, has a
                tensor that the model does not have, or a tensor of another shape.
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
    def preset_classes(cls) -> tuple[type, ...]:
        """The tasks whose presets hold the head of this task."""
        return (cls,)

    @classmethod
    def load_checkpoint(
        cls,
        checkpoint: Any,
        load_weights: bool,
        *,
        dtype: Any = None,
        skip: Sequence[str] = (),
        **arguments: Any,
    ) -> Self:
        """Builds the task of a checkpoint of another library.

        Args:
            checkpoint: from `checkpoints.open_checkpoint`.
            load_weights, dtype: as for `from_preset`.
            skip: list of regular expressions, as for `from_preset`.
            **arguments: of the constructor.
        """
        return load_checkpoint(cls, checkpoint, load_weights, dtype, skip, **arguments)

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        """Builds the task of a preset that KerasHub's loader has opened."""
        own_head = not cls.has_new_head(arguments)
        return loader.load_task(cls, load_weights, own_head, preprocessor=None, **arguments)

    @in_scope_of_model
    def compile(
        self, optimizer: str | keras.optimizers.Optimizer, loss: Any, **kwargs: Any
    ) -> None:
        """Configures training; see `keras.Model.compile`.

        Logged losses are means over the batches whose loss is finite. A loss of Keras that is given
        by its name, class or function takes logits if the outputs of the task are logits.

        Raises:
            ValueError: if the loss takes logits and the outputs are probabilities, or the reverse.
        """
        loss = keras.tree.map_structure(self.read_loss, loss)
        forget_metrics(self)
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        if loss is not None:
            track_finite_losses(self)
        if self.optimizer is not None:
            sum_before_clipping(self.optimizer)

    def read_loss(self, loss: Any) -> Any:
        """Makes a loss, as users write it, fit the labels and the outputs of the model."""
        return take_class_ids(read_loss(loss, self.returns_logits))

    def compile_from_config(self, config: Config) -> None:
        """Compiles with the saved arguments. Keras skips this if a class has its own `compile`."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self._build_optimizer()

    def make_predict_function(self, force: bool = False) -> Any:
        """Keras' `predict_function`; under PyTorch with `jit_compile=True` a better one."""
        if keras.config.backend() != "torch" or not self.jit_compile:
            return super().make_predict_function(force)
        if self.predict_function is None or force:
            self.predict_function: Any = compile_forward(self)
        return self.predict_function

    @whole_batches()
    @in_scope_of_model
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
        sequence_packing: bool = False,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        initial_epoch: int = 0,
        callbacks: keras.callbacks.Callback | Sequence[keras.callbacks.Callback] | None = None,
        verbose: str | int = "auto",
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the task; see `keras.Model.fit`.

        Args:
            x: texts (a list, an array or a pandas Series), a tuple of such columns for pairs, a
                DataFrame or dict of text columns, packed arrays by name, or a dataset of
                `(x, y)` batches: Grain, `tf.data`, `keras.utils.PyDataset`, a PyTorch
                `DataLoader` or a generator.
            y: the labels of all rows, as the task takes them; None for a dataset.
            batch_size: int, 32 by default; None for a dataset.
            class_weight: dict of label or class id -> weight of its rows.
            validation_data: `(x, y)`, `(x, y, sample_weight)` or a dataset.
            validation_split: float, the share of the rows to validate on. They are the last rows.
            validation_batch_size: int, `batch_size` by default.
            shuffle: bool, whether rows in memory come in a fresh order each epoch.
            sequence_packing: bool, whether the encoder works on the tokens of a batch, one row of
                the batch after the other, hidden from each other. It then computes little on
                padding. The loss and the gradients of a batch stay the same, except for
                the dropout. With packing, shuffled rows in memory are not batched with rows of
                similar length. So a training that goes on must keep this argument. Validation is
                not packed.
            callbacks: list of `keras.callbacks.Callback`. With a `TrainingCheckpoint`, an
                interrupted training goes on.
            epochs, sample_weight, steps_per_epoch, validation_steps, initial_epoch, verbose,
                **kwargs: as in Keras.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: before any step is taken, if the rows are in memory and a text is missing
                or a label is unknown; or if the task cannot pack its rows.
        """
        warn_if_emulated(self, trains=True)
        if sequence_packing:
            check_can_pack_sequences(self)
        check_strategy(self.optimizer)
        with ProcessWatch().watch() as reports:
            checkpoint, callbacks = find_training_checkpoint(callbacks)
            if reports:
                callbacks = [*list_callbacks(callbacks), *reports]
            progress = find_progress(self.optimizer, checkpoint)
            data = read_data(self, x, y, sample_weight, batch_size, labelled=True)
            data, held_out = hold_out(
                self, data, validation_data, validation_split, validation_batch_size
            )
            check_data(data, choose_size(batch_size), shuffle)
            training = training_source(
                self, data, batch_size, shuffle, progress.seed, class_weight, sequence_packing
            )
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
            start_jointly(
                self,
                training,
                epochs=epochs,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
                progress=progress,
            )
            if not find_group().leads:
                verbose = 0
            with (
                compile_ahead(self, training.batches_ahead(total, progress.batches)),
                resume_run(
                    self,
                    checkpoint,
                    callbacks,
                    training.dataset,
                    batches,
                    initial_epoch,
                    epochs=epochs,
                    steps=steps_per_epoch,
                    verbose=verbose,
                ) as callbacks,
            ):
                return keras.Model.fit(
                    self,
                    x=batches,
                    validation_data=held_out,
                    validation_steps=validation_steps,
                    epochs=epochs,
                    steps_per_epoch=steps_per_epoch,
                    initial_epoch=initial_epoch + progress.epoch,
                    shuffle=False,  # The rows are shuffled.
                    callbacks=callbacks,
                    verbose=verbose,
                    **kwargs,
                )

    @whole_batches()
    @in_scope_of_model
    def evaluate(
        self,
        x: Inputs = None,
        y: Labels = None,
        batch_size: int | None = None,
        sample_weight: Labels = None,
        steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the loss and metrics; see `keras.Model.evaluate`.

        Args:
            x, y, batch_size, sample_weight: as for `fit`.
            steps: int, batches to evaluate. None evaluates all.
            **kwargs: as in Keras.
        """
        callbacks = kwargs.get("callbacks")
        if isinstance(callbacks, WholeEpochs) and callbacks.terminated:
            return {}  # `fit` is about to end.
        if not kwargs.get("_use_cached_eval_dataset"):
            data = read_data(self, x, y, sample_weight, batch_size, labelled=True)
            source = evaluation_source(self, data, batch_size, by_length=steps is None)
            steps = steps or source.num_batches
            x, y, sample_weight = source.preprocessed(), None, None
            if not find_group().leads:
                kwargs["verbose"] = 0
        logs = keras.Model.evaluate(
            self, x=x, y=y, sample_weight=sample_weight, steps=steps, **kwargs
        )
        if isinstance(callbacks, WholeEpochs) and callbacks.terminated:
            return {}  # Means over some of the batches.
        return logs

    @in_scope_of_model
    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the answers in the order of the rows; see `keras.Model.predict`.

        Args:
            x, batch_size: as for `fit`.
            steps: int. Only the first `steps` batches of rows are answered. None answers all rows.
            **kwargs: `verbose` and `callbacks`, as in Keras.
        """
        return predict(self, x, batch_size, steps, self.decode, **kwargs)

    @whole_batches()
    @in_scope_of_model
    def train_on_batch(
        self,
        x: Inputs,
        y: Labels = None,
        sample_weight: Labels = None,
        class_weight: Mapping[Any, float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Trains on one batch of rows, as for `fit`; see `keras.Model.train_on_batch`."""
        preprocess = weighted(self, self.preprocess_training, class_weight, given=sample_weight)
        x, y, weight = self._prepare_batch(preprocess, x, y, sample_weight, labelled=True)
        lay_schedule_without_end(self)
        self._build_optimizer()
        return keras.Model.train_on_batch(self, x, y, weight, **kwargs)

    @whole_batches()
    @in_scope_of_model
    def test_on_batch(
        self, x: Inputs, y: Labels = None, sample_weight: Labels = None, **kwargs: Any
    ) -> Any:
        """Evaluates one batch of rows, as for `fit`; see `keras.Model.test_on_batch`."""
        batch = self._prepare_batch(self.preprocess_training, x, y, sample_weight, labelled=True)
        return keras.Model.test_on_batch(self, *batch, **kwargs)

    @whole_batches()
    def predict_on_batch(self, x: Inputs) -> Any:
        """The outputs for one batch of rows, as for `fit`; see `keras.Model.predict_on_batch`."""
        outputs = keras.Model.predict_on_batch(self, self._prepare_batch(self.preprocess, x)[0])
        return drop_copies(self, outputs)

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, over the rows of all replicas."""
        with summed_variables(self.metrics_variables):
            return super().get_metrics_result()

    def _aggregate_additional_loss(self, loss):
        """Each replica adds its part of what a layer adds to the loss of a batch."""
        loss = super()._aggregate_additional_loss(loss)
        # Keras does so under TensorFlow. Under JAX a step is one program.
        return loss / count_replicas() if keras.config.backend() == "torch" else loss

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds losses and metrics under a strategy of TensorFlow, for shares of any sizes.

        Keras would take the mean of the shares of all replicas as a batch.
        """
        if iterator is not None and len(find_groups()) > 1:
            for _, _, batches in iterator:
                data_batch = take_first_share(next(batches))
                break
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)

    def _build_optimizer(self):
        """Makes the optimizer's variables. If a step made them, TensorFlow would trace it twice."""
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def _prepare_batch(self, preprocess, *batch, labelled=False):
        rows = self.cut_windows(read_data(self, *batch, labelled=labelled))
        return keras.utils.unpack_x_y_sample_weight(preprocess(*rows.as_batch()))

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        """Reads rows in memory, the arguments of `fit`."""
        return Rows.read(x, y, sample_weight)

    def unpack_batch(self, batch: Any) -> tuple[Any, Any, Any]:
        """The (x, y, sample_weight) of an element of a dataset that `predict` takes."""
        return unpack_batch(batch)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        """Reads one batch of a dataset, which may be tensors in a graph of TensorFlow."""
        return Rows.read_batch(x, y, sample_weight)

    def arrange_columns(
        self, inputs: tuple[Any, ...], names: tuple[str, ...] | None, labelled: bool
    ) -> tuple[Any, ...]:
        """Checks the text columns of rows, and puts them into the order of `input_names`.

        Args:
            inputs: tuple of text columns, arrays or tensors.
            names: tuple of their names, or None.
            labelled: bool, whether the rows are for `fit` or `evaluate`. The first such rows set
                `input_names`.

        Returns:
            tuple of text columns.
        """
        check_segments(len(inputs), self.backbone, self.input_names)
        if labelled and self.input_names is None:
            self.input_names = names or default_names(len(inputs))
        return order_columns(inputs, names, self.input_names)

    def encode_labels(self, labels: Labels) -> Labels:
        """Turns labels, as users write them, into labels for the loss."""
        return labels

    def class_weighting(self, class_weight: Mapping[Any, float]) -> Callable[[Tensor], Tensor]:
        """The function from encoded labels to the weights of their classes."""
        raise ValueError(f"{type(self).__name__} has no classes, so class_weight must be None.")

    def cut_windows(self, rows: Rows) -> Rows:
        """Turns rows into the rows that the model sees, such as windows over long texts.

        Args:
            rows: `Rows` with encoded labels.

        Returns:
            `Rows`: `rows` itself, or new rows. `decode` gets them with the outputs.
        """
        return rows

    def decode(self, outputs: Any, rows: Rows | None) -> Any:
        """Turns outputs into the answers that `predict` returns.

        Args:
            outputs: the arrays of `keras.Model.predict`, in the order of the rows. If
                `cut_windows` has made new rows, `outputs` is a list with an array for each new row.
                The lengths of these arrays differ.
            rows: `Rows` from `cut_windows`. It is None for a dataset, unless an output of the
                model has an open length.
        """
        return outputs

    def preprocess_samples(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch of a dataset into inputs of the model, also in a graph of TensorFlow."""
        return self.preprocess(
            *self.cut_windows(read_samples(self, x, y, sample_weight)).as_batch()
        )

    def preprocess_training_samples(
        self, x: Inputs, y: Labels = None, sample_weight: Labels = None
    ) -> Any:
        """Turns a batch of a dataset for `fit` or `evaluate` into inputs, labels and weights."""
        return self.preprocess_training(
            *self.cut_windows(read_samples(self, x, y, sample_weight)).as_batch()
        )

    def preprocess_training(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch of `fit` or `evaluate` into inputs, labels and weights.

        By default it calls `preprocess`. Args, Returns: as for `preprocess`.
        """
        return self.preprocess(x, y, sample_weight)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch with encoded labels into inputs of the model.

        Args:
            x: tuple of text columns, which are packed; or dict of packed arrays, which stay as
                they are.
            y, sample_weight: labels and weights for the loss, or None.

        Returns:
            dict of packed arrays; with labels a tuple (packed arrays, labels), with weights
            (packed arrays, labels, weights).
        """
        if isinstance(x, tuple):
            x = self.pack_texts(x)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack_texts(self, texts: Sequence[Any]) -> dict[str, Tensor]:
        """Turns texts into the inputs of the backbone, by the preprocessor of this task.

        Args:
            texts: tuple with one entry for each segment: B strings as a list or an array, or a
                TensorFlow string tensor (B,), also in a graph.

        Returns:
            dict of NumPy arrays (B, L), or of TensorFlow tensors for tensors.

        Raises:
            ValueError: if there is no preprocessor, or the task was trained on another number of
                texts in a row.
        """
        return pack_texts(self, texts)
