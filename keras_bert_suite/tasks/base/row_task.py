"""The common base of tasks: their training, evaluation and prediction."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Inputs, Labels
from keras_bert_suite.argument_checks import is_auto
from keras_bert_suite.layers import PackedSequences
from keras_bert_suite.preprocessing.keras_hub_packer import find_segment_packer
from keras_bert_suite.replicas import (
    drop_copies,
    find_group,
    has_joint_variables,
    in_scope_of_model,
    whole_batches,
)
from keras_bert_suite.replicas.process_watch import ProcessWatch
from keras_bert_suite.tasks.base.batch_sources import (
    choose_size,
    evaluation_source,
    hold_out,
    read_data,
    training_source,
    weighted,
)
from keras_bert_suite.tasks.base.compiled_forward import compile_forward
from keras_bert_suite.tasks.base.held_weights import hold_weights
from keras_bert_suite.tasks.base.input_checks import check_preprocessor
from keras_bert_suite.tasks.base.joint_start import (
    check_shared,
    check_shares,
    copy_weights,
    share_batch,
    start_jointly,
)
from keras_bert_suite.tasks.base.predicting import predict
from keras_bert_suite.tasks.base.preset_task import PresetTask
from keras_bert_suite.tasks.base.sequence_packing import check_can_pack_sequences
from keras_bert_suite.tasks.base.shared_steps import SharedSteps
from keras_bert_suite.tasks.base.task_hooks import TaskHooks
from keras_bert_suite.tasks.base.training_run import TrainingRun, find_progress, validate
from keras_bert_suite.training import (
    find_training_checkpoint,
    forget_metrics,
    lay_schedule,
    lay_schedule_without_end,
    sum_before_clipping,
    track_finite_losses,
)


class RowTask(SharedSteps, TaskHooks, PackedSequences, PresetTask):
    """A task whose `fit`, `evaluate` and `predict` take rows in memory, or datasets of batches.

    Rows in memory are batched with rows of similar length, in a fresh order each epoch. `fit`
    lays a schedule of open length over its steps, see `LinearWarmupDecay`.

    List `RowTask` before the KerasHub class in the bases. KerasHub's own `fit` would preprocess
    each batch a second time.

    `TaskHooks` has the hooks by which tasks differ. `PresetTask` opens a task, and `SharedSteps`
    shares its steps among replicas.
    """

    #: Whether `train_on_batch` has given all processes the weights of the first.
    _has_common_weights = False

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

    @in_scope_of_model
    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training, by default as the source of the task trains it.

        Logged losses are means over the batches whose loss is finite. A loss of Keras that is given
        by its name, class or function takes logits if the outputs of the task are logits.

        Args:
            optimizer: "auto" is `AdamW` at `default_rate` with linear warm-up over the share
                `warmup_ratio` of the steps that `fit` takes, and linear decay over the rest.
            loss: "auto" is `make_loss()`.
            **kwargs: see `keras.Model.compile`. The metrics are those of `make_metrics()` by
                default, or for "auto".

        Raises:
            ValueError: if the loss takes logits and the outputs are probabilities, or the reverse.
        """
        if is_auto(optimizer):
            optimizer = self.make_optimizer()
        if is_auto(loss):
            loss = self.make_loss()
        for name, value in self.make_metrics().items():
            if is_auto(kwargs.get(name, "auto")):
                kwargs[name] = value
        loss = keras.tree.map_structure(self.read_loss, loss)
        forget_metrics(self)
        self._has_common_weights = False
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        if loss is not None:
            track_finite_losses(self)
        if self.optimizer is not None:
            sum_before_clipping(self.optimizer)

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
                similar length. So a training that resumes must keep this argument. Validation is
                not packed.
            callbacks: list of `keras.callbacks.Callback`. With a `TrainingCheckpoint`, an
                interrupted training resumes.
            epochs, sample_weight, steps_per_epoch, validation_steps, initial_epoch, verbose,
                **kwargs: as in Keras.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: before any step is taken, if the rows are in memory and a text is missing
                or a label is unknown; if the task cannot pack its rows; or if it was not compiled.
        """
        if not self.compiled:
            raise ValueError("`fit` needs a loss and an optimizer: call `compile` first.")
        if sequence_packing:
            check_can_pack_sequences(self)
        with ProcessWatch("fit").watch(callbacks) as callbacks:
            checkpoint, callbacks = find_training_checkpoint(callbacks)
            progress = find_progress(self.optimizer, checkpoint)
            data = read_data(self, x, y, sample_weight, batch_size, labelled=True)
            data, held_out = hold_out(
                self, data, validation_data, validation_split, validation_batch_size
            )
            check_shares(self.optimizer, data, choose_size(batch_size))
            run = TrainingRun(
                training_source(
                    self, data, batch_size, shuffle, progress.seed, class_weight, sequence_packing
                ),
                None
                if held_out is None
                else evaluation_source(self, held_out, validation_batch_size or batch_size),
                progress=progress,
                epochs=epochs,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
            )
            lay_schedule(self, progress.first_step, run.total, callbacks)
            self._build_optimizer()
            start_jointly(self, run)
            return run.train(self, checkpoint, callbacks, shuffle, verbose, **kwargs)

    @whole_batches()
    @in_scope_of_model
    def evaluate(
        self,
        x: Inputs = None,
        y: Labels = None,
        batch_size: int | None = None,
        sample_weight: Labels = None,
        steps: int | None = None,
        callbacks: keras.callbacks.Callback | Sequence[keras.callbacks.Callback] | None = None,
        verbose: str | int = "auto",
        **kwargs: Any,
    ) -> Any:
        """Returns the loss and metrics; see `keras.Model.evaluate`.

        Args:
            x, y, batch_size, sample_weight: as for `fit`.
            steps: int, batches to evaluate. None evaluates all.
            callbacks, verbose, **kwargs: as in Keras.
        """
        if kwargs.get("_use_cached_eval_dataset"):
            return validate(
                self, callbacks, x=x, y=y, sample_weight=sample_weight, steps=steps, **kwargs
            )
        with ProcessWatch("evaluate").watch(callbacks) as callbacks:
            data = read_data(self, x, y, sample_weight, batch_size, labelled=True)
            source = evaluation_source(self, data, batch_size, by_length=steps is None)
            steps = steps or source.num_batches
            check_shared(self, {"data": source}, steps=steps)
            with hold_weights(self):
                return keras.Model.evaluate(
                    self,
                    x=source.preprocessed(),
                    steps=steps,
                    callbacks=callbacks,
                    verbose=verbose if find_group().leads else 0,
                    **kwargs,
                )

    @in_scope_of_model
    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the answers in the order of the rows; see `keras.Model.predict`.

        Each process of PyTorch answers all rows itself, and waits for no other process. Under a
        `keras.distribution` of JAX all processes predict the same rows together.

        Args:
            x, batch_size: as for `fit`.
            steps: int. Only the first `steps` batches of rows are answered. None answers all rows.
            **kwargs: `verbose` and `callbacks`, as in Keras.

        Raises:
            ValueError: in all processes of JAX, if they have different models, arguments or rows.
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
        """Trains on one batch of rows, as for `fit`; see `keras.Model.train_on_batch`.

        Processes that share the batch all pass the whole batch. They begin with the weights of the
        first process.

        Raises:
            ValueError: as for `fit`; and in all processes, if they have different batches.
        """
        preprocess = weighted(self, self.preprocess_training, class_weight, given=sample_weight)
        batch = self._prepare_batch(preprocess, x, y, sample_weight, labelled=True)
        lay_schedule_without_end(self)
        batch = share_batch("train_on_batch", batch)
        if self.optimizer is not None:
            self._build_optimizer()
            if not self._has_common_weights:
                copy_weights(self)
                self._has_common_weights = True
        return keras.Model.train_on_batch(self, *batch, **kwargs)

    @whole_batches()
    @in_scope_of_model
    def test_on_batch(
        self, x: Inputs, y: Labels = None, sample_weight: Labels = None, **kwargs: Any
    ) -> Any:
        """Evaluates one batch of rows, as for `fit`; see `keras.Model.test_on_batch`.

        Processes share the batch as in `train_on_batch`.
        """
        batch = self._prepare_batch(self.preprocess_training, x, y, sample_weight, labelled=True)
        return keras.Model.test_on_batch(self, *share_batch("test_on_batch", batch), **kwargs)

    @whole_batches()
    def predict_on_batch(self, x: Inputs) -> Any:
        """The outputs for one batch of rows, as for `fit`; see `keras.Model.predict_on_batch`."""
        batch = self._prepare_batch(self.preprocess, x)
        if has_joint_variables():
            batch = share_batch("predict_on_batch", batch)
        with hold_weights(self):
            return drop_copies(self, keras.Model.predict_on_batch(self, batch[0]))

    def _build_optimizer(self):
        """Makes the optimizer's variables. If a step made them, TensorFlow would trace it twice."""
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def _prepare_batch(self, preprocess, *batch, labelled=False):
        rows = self.cut_windows(read_data(self, *batch, labelled=labelled))
        return keras.utils.unpack_x_y_sample_weight(preprocess(*rows.as_batch()))
