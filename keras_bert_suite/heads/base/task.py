"""The common base of tasks: what they are trained with, and what users call."""

import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Inputs, Labels
from keras_bert_suite.argument_checks import check_arguments, is_auto
from keras_bert_suite.data.input_dataset import list_sources
from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.compile_arguments import read_losses, read_metrics
from keras_bert_suite.heads.base.head import Head, make_no_parts
from keras_bert_suite.heads.base.input_checks import EncoderInputs, check_in_memory
from keras_bert_suite.heads.base.part_checks import check_encoder, check_preprocessor
from keras_bert_suite.heads.base.preset_task import PresetTask
from keras_bert_suite.layers import PackedSequences
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.replicas import in_scope_of_model, whole_batches
from keras_bert_suite.replicas.process_watch import ProcessWatch
from keras_bert_suite.runs import trainer
from keras_bert_suite.runs.batches import evaluation_batches, pack_elements, read, training_batches
from keras_bert_suite.runs.packed_layout import check_can_pack_sequences, choose_layout
from keras_bert_suite.runs.prediction import PredictingModel
from keras_bert_suite.runs.technique_step import set_technique
from keras_bert_suite.runs.trained_model import TrainedModel
from keras_bert_suite.runs.trained_weights import follow_weights
from keras_bert_suite.runs.training_run import validate
from keras_bert_suite.training import (
    AdamW,
    LinearWarmupDecay,
    OutputForm,
    Technique,
    forget_metrics,
    is_loss_of_keras,
    is_metric_of_keras,
    read_loss,
    read_metric,
    set_head_rate,
    sum_before_clipping,
    track_finite_losses,
)
from keras_bert_suite.training.head_rate import RATE_ADVICE

#: The arguments of `compile` that are structures of metrics.
METRICS = ("metrics", "weighted_metrics")
#: Keras' name of a format -> the function that writes it.
EXPORTS = {
    "tf_saved_model": "export_saved_model",
    "onnx": "export_onnx",
    "openvino": "export_openvino",
    "litert": "export_litert",
}

_FIT_ARGUMENTS = tuple(inspect.signature(keras.Model.fit).parameters)[1:]


def part_attribute(part: str, name: str) -> property:
    """A property of a task that reads and sets an attribute of a part, such as "data.labels"."""
    find_part = operator.attrgetter(part)
    read = operator.attrgetter(f"{part}.{name}")
    return property(
        read, lambda task, value: setattr(find_part(task), name, value), doc=f"`{part}.{name}`."
    )


def _list_compile_arguments(cls):
    """The names of the arguments of `compile` of a class and of its bases."""
    methods = [vars(base)["compile"] for base in cls.__mro__ if "compile" in vars(base)]
    signatures = [inspect.signature(method).parameters.values() for method in methods]
    named = [
        p.name
        for _, *own in signatures
        for p in own
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return tuple(dict.fromkeys(named))


class Task(TrainedModel, PredictingModel, PackedSequences, PresetTask):
    """A task whose `fit`, `evaluate` and `predict` take rows in memory, or datasets of batches.

    A task is a model and two parts. `data` reads the arguments of users, and packs batches of them
    for the model. `answers` turns outputs of the model into labels, texts or scores.

    Rows in memory are batched with rows of similar length, in a fresh order each epoch. `fit`
    lays a schedule of open length over its steps, see `LinearWarmupDecay`.

    List `Task` before the KerasHub class in the bases. KerasHub's own `fit` would preprocess each
    batch a second time.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    data: Any
    answers: Any = RowAnswers()

    #: How the parts are made, and how the task is trained.
    HEAD = Head(task="Task", make_parts=make_no_parts)

    @property
    def head_learning_rate(self) -> float | None:
        """float, the peak for the weights outside of the backbone; None for the common peak."""
        return self.HEAD.head_learning_rate

    def make_parts(
        self, packer: keras.layers.Layer | None, encoder: EncoderInputs | None = None, **said: Any
    ) -> None:
        """Makes `data` and `answers`, and sets the preprocessor.

        Args:
            packer: the preprocessor.
            encoder: `EncoderInputs`; None to make them of the backbone.
            **said: arguments of the task, see `Head`.
        """
        common = {"returns_logits": self.returns_logits, "input_names": None}
        said = {**common, **self.find_part_settings(), **said}
        encoder = EncoderInputs.of(self.backbone) if encoder is None else encoder
        self.data, self.answers = self.HEAD.make_parts(said, packer, encoder)
        self.preprocessor = packer

    def find_part_settings(self) -> dict[str, Any]:
        """The values of a subclass for its parts, beside the arguments of its base."""
        return {}

    @property
    def backbone(self) -> Any:
        """The encoder, or for some tasks the encoder-decoder. It is checked when it is set."""
        return getattr(self, "_backbone", None)

    @backbone.setter
    def backbone(self, value: Any) -> None:
        if not self.takes_encoder_decoders:
            check_encoder(self, value)
        keras_hub.models.Task.backbone.fset(self, value)

    @property
    def preprocessor(self) -> Any:
        """The layer from texts to the backbone's inputs, or None. It is checked when it is set.

        `data` packs with it, and may replace a preprocessor of KerasHub, see `TextData.packer`. So
        a constructor makes `data` first.
        """
        return super().preprocessor

    @preprocessor.setter
    def preprocessor(self, value: keras.layers.Layer | None) -> None:
        check_preprocessor(value, self.backbone)
        self.data.packer = value
        keras_hub.models.Task.preprocessor.fset(self, self.data.packer)

    def check_parts(self) -> None:
        """Raises a ValueError if the preprocessor has changed, and does not fit the backbone."""
        check_preprocessor(self.preprocessor, self.backbone)

    def check_dataset(self, dataset: Any) -> None:
        """Raises a ValueError if the task cannot learn from a user's dataset.

        `PretrainingBatches` say so by their method `check_task`, also if they are mapped.
        """
        for source in list_sources(dataset):
            if hasattr(source, "check_task"):
                source.check_task(self)

    #: tuple of the names of the texts of a row, and of the inputs of an export. The first training
    #: sets it.
    input_names = part_attribute("data", "input_names")

    def make_optimizer(
        self,
        learning_rate: float | None = None,
        warmup_ratio: float | None = None,
        **kwargs: Any,
    ) -> keras.optimizers.Optimizer:
        """The optimizer that `compile` takes for "auto", or one with other values.

        Args:
            learning_rate, warmup_ratio: floats; None for the values of the `HEAD`.
            **kwargs: further arguments of `AdamW`.
        """
        schedule = LinearWarmupDecay(
            self.HEAD.learning_rate if learning_rate is None else learning_rate,
            warmup_ratio=self.HEAD.warmup_ratio if warmup_ratio is None else warmup_ratio,
        )
        return AdamW(schedule, **{"rate_multipliers": self.HEAD.rate_multipliers, **kwargs})

    def make_loss(self) -> Any:
        """The loss that `compile` takes for "auto"."""
        raise NotImplementedError

    def make_metrics(self) -> dict[str, Any]:
        """Further arguments that `compile` takes for "auto"."""
        return {}

    @property
    def returns_logits(self) -> bool:
        """bool, whether outputs are logits, and not probabilities."""
        return True

    #: Why losses and metrics of Keras are not for the task, and which are; None if they are.
    loss_advice: str | None = None
    metric_advice: str | None = None

    #: Whether weights say which predictions of a row count, as weights of tokens do.
    are_tokens = False

    def find_output_form(self, output: str | None = None) -> OutputForm:
        """The form of an output, for losses and metrics of Keras.

        Args:
            output: str, the name of one of several outputs; None for the only one.
        """
        outputs = self.output
        if isinstance(outputs, dict):
            outputs = outputs.get(output) if len(outputs) > 1 else next(iter(outputs.values()))
        size = None if outputs is None else outputs.shape[-1]
        kind = self.data.labels.of_output(output).output_kind
        return OutputForm(kind, self.returns_logits, size, self.are_tokens)

    def read_loss(self, loss: Any, output: str | None = None) -> Any:
        """Makes a loss, as users write it, fit the labels and the outputs of the model.

        Args:
            loss: a loss of an output.
            output: as for `find_output_form`.
        """
        if self.loss_advice is None:
            return read_loss(loss, self.find_output_form(output))
        is_unknown = isinstance(loss, str) and keras.saving.get_registered_object(loss) is None
        if is_unknown or is_loss_of_keras(loss):
            raise ValueError(
                f"A {type(self).__name__} cannot be trained with the loss {loss!r}. "
                f"{self.loss_advice}"
            )
        return loss

    def read_metric(self, metric: Any, output: str | None = None, only_counts: bool = False) -> Any:
        """Makes a metric, as users write it, get labels and outputs as it expects them.

        Args:
            metric: a metric of an output.
            output: as for `find_output_form`.
            only_counts: as for `training.read_metric`.
        """
        if self.metric_advice is None:
            return read_metric(metric, self.find_output_form(output), only_counts)
        if is_metric_of_keras(metric):
            raise ValueError(
                f"The metric {metric!r} of Keras is not for a {type(self).__name__}. "
                f"{self.metric_advice}"
            )
        return metric

    @in_scope_of_model
    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        head_learning_rate: float | None = None,
        technique: Technique | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures training, by default as the source of the task trains it.

        Logged losses are means over the rows, or over the predictions that count, of all batches
        whose loss is finite. With several heads `loss` is a mean over the batches.

        Losses and metrics of Keras, given as an object, or by their name, class or function, get
        the labels and the outputs as they expect them: class ids or one-hot rows; logits if they
        have `from_logits=True`; otherwise probabilities. Losses by their name take logits if the
        outputs of the task are logits. Metrics such as `Precision` and `AUC` are about the second
        of two classes; with a `class_id`, and for more classes, they get one-hot rows. The names
        "accuracy" and "acc" are the accuracy of the task: of classes, of whole sets of labels, of
        tokens, of all attributes. An `F1Score` by its name is the mean over the classes; of sets of
        labels it has the threshold 0.5, unless you pass another. Where tokens are labelled, only
        tokens with a weight above 0 count, in losses and in metrics. A loss or a metric of Keras
        that is for other labels is an error.

        Your functions and classes get the encoded labels and the outputs of the model unchanged,
        and so do subclasses of Keras' classes that override `call` or `update_state`.

        Args:
            optimizer: "auto" is `make_optimizer()`: `AdamW` at the `learning_rate` of its
                `HEAD`, with linear warm-up over the share `warmup_ratio` of the steps that `fit`
                takes, and linear decay over the rest.
            loss: "auto" is `make_loss()`.
            head_learning_rate: float, the peak for the weights outside of the backbone, which are
                new. None is `head_learning_rate` of the task for an optimizer "auto", and the rate
                of the optimizer for another. The transitions of a CRF keep their own factor.
            technique: how the gradients of a batch are made, such as `FGM(1.0)`. None for one
                forward and one backward pass.
            **kwargs: see `keras.Model.compile`. Metrics are `make_metrics()` by default, or for
                "auto".

        Raises:
            ValueError: if a loss or a metric takes logits and the outputs are probabilities, or a
                loss the reverse; if a loss or a metric of Keras is for other labels; if the task
                cannot be trained by `technique`; or if `optimizer` has no rate for a head, see
                `set_head_rate`.
        """
        known = _list_compile_arguments(type(self))
        check_arguments(f"{type(self).__name__}.compile", kwargs, known)
        set_technique(self, technique)
        if is_auto(optimizer):
            optimizer = self.make_optimizer()
            if head_learning_rate is None:
                head_learning_rate = self.head_learning_rate
        if head_learning_rate is not None:
            self.set_head_rates(optimizer, head_learning_rate)
        if is_auto(loss):
            loss = self.make_loss()
        defaults = self.make_metrics()
        if self.are_tokens and not is_auto(kwargs.get("metrics", "auto")) and kwargs["metrics"]:
            defaults.pop("weighted_metrics", None)  # They would stand beside the user's metrics.
        for name in {**dict.fromkeys(METRICS), **defaults}:
            if is_auto(kwargs.get(name, "auto")):
                kwargs[name] = defaults.get(name)
        loss = read_losses(self, loss)
        # Keras would track the metrics in an attribute.
        given = vars(self)["given_metrics"] = {name: kwargs[name] for name in METRICS}
        read = dict(zip(METRICS, read_metrics(self, *given.values()), strict=True))
        vars(self)["metrics_of_compile"] = read
        kwargs.update(read)
        forget_metrics(self)
        self._has_common_weights = False
        self._given_jit_compile = kwargs.get("jit_compile", "auto")
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        if loss is not None:
            track_finite_losses(self)
        if self.optimizer is not None:
            sum_before_clipping(self.optimizer)

    def set_head_rates(self, optimizer: Any, rate: float) -> None:
        """Gives the weights outside of the backbone another peak of the learning rate."""
        encoder = {id(variable) for variable in self.backbone.variables}
        new = [v for v in self.trainable_weights if id(v) not in encoder]
        set_head_rate(optimizer, new, rate)

    def get_compile_config(self) -> Config:
        config = super().get_compile_config()
        if not config:
            return config
        # A file has the metrics as the user wrote them, and "auto" may mean another value there.
        given = keras.saving.serialize_keras_object(self.given_metrics)
        config = {**config, **given, "jit_compile": self._given_jit_compile}
        if self.technique is None:
            return config
        technique = keras.saving.serialize_keras_object(self.technique)
        return {**config, "technique": technique}

    def compile_from_config(self, config: Config) -> None:
        """Compiles with the saved arguments. Keras skips this if a class overrides `compile`."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*{RATE_ADVICE}")  # Who saved the task has read it.
            self.compile(**keras.saving.deserialize_keras_object(config))
        follow_weights(self)

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
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
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
            batch_size: int, from the `HEAD` by default; None for a dataset.
            class_weight: dict of label or class id -> weight of its rows. "balanced" weighs the
                labels of rows in memory so that each class has the same weight in the loss, or of
                sets of labels each label as much as its absence.
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
            initial_epoch: int, the epoch to begin with. If the optimizer has taken steps, a
                schedule of open length goes on where this epoch of `epochs` begins, and `fit` says
                so. A new optimizer begins a new schedule.
            epochs, sample_weight, steps_per_epoch, validation_steps, verbose, **kwargs: as in
                Keras.

        Returns:
            `keras.callbacks.History`.

        Raises:
            ValueError: before any step is taken, if the rows are in memory and a text is missing
                or a label is unknown; if the task cannot pack its rows; or if it was not compiled.
        """
        check_arguments(f"{type(self).__name__}.fit", kwargs, _FIT_ARGUMENTS)
        if not self.compiled:
            raise ValueError("`fit` needs a loss and an optimizer: call `compile` first.")
        if sequence_packing:
            check_can_pack_sequences(self)
        self.drop_scores()
        with ProcessWatch("fit").watch(callbacks) as callbacks:
            given = read(self, x, y, sample_weight, labelled=True, batch_size=batch_size)
            if batch_size is None:
                batch_size = self.HEAD.batch_size
            given, held_out = trainer.hold_out(
                self, given, validation_data, validation_split, validation_batch_size
            )
            weigh = self._weigh_classes(class_weight, given)
            trainer.learn_rows(self, given, verbose)
            if held_out is not None:
                size = validation_batch_size or batch_size
                held_out = evaluation_batches(self.data, held_out, size)
            make_batches = functools.partial(
                training_batches,
                self.data,
                given,
                batch_size,
                shuffle,
                weigh=weigh,
                lay_out=choose_layout(self.backbone) if sequence_packing else None,
            )
            history = trainer.fit(
                self,
                make_batches,
                held_out,
                epochs=epochs,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
                callbacks=callbacks,
                shuffle=shuffle,
                verbose=verbose,
                **kwargs,
            )
        if history.epoch:
            self.note_data(given)
        return history

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
            given = read(self, x, y, sample_weight, labelled=True, batch_size=batch_size)
            batches = evaluation_batches(self.data, given, batch_size, by_length=steps is None)
            return trainer.evaluate(self, batches, steps, callbacks, verbose, **kwargs)

    def score_with(
        self,
        score: Callable[..., Any],
        x: Inputs,
        y: Labels,
        batch_size: int | None = None,
        *,
        may_be_empty: bool = False,
    ) -> Any:
        """Scores the outputs for labelled rows in memory.

        Args:
            score: function(outputs, rows, labels) that returns the scores. `outputs` and `rows` are
                as for `predict_with`, and `labels` are the encoded labels of all rows.
            x, y: as for `fit`, in memory.
            batch_size: int, 32 by default.
            may_be_empty: bool, whether zero rows are allowed.
        """
        check_in_memory(x)
        labels = read(self, x, y, labelled=not may_be_empty).labels
        decode = functools.partial(score, labels=labels)
        condense = self.answers.condense
        return self.predict_with(decode, x, batch_size, condense=condense, verbose=0)

    def export(self, filepath: Any, format: str = "tf_saved_model", **kwargs: Any) -> None:
        """Not for tasks: `export_saved_model` and its like also write tokenizer and packing.

        Raises:
            NotImplementedError: always. It names the function to call.
        """
        name = EXPORTS.get(format, "export_saved_model")
        raise NotImplementedError(
            f"Keras' export of format={format!r} would leave out what reads the texts of a "
            f"{type(self).__name__}. Call keras_bert_suite.{name}(task, {str(filepath)!r})."
        )

    def preprocess_samples(
        self,
        x: Inputs,
        y: Labels = None,
        sample_weight: Labels = None,
        *,
        labelled: bool = False,
    ) -> Any:
        """Packs a batch of a dataset, for a custom training loop: `dataset.map(...)`.

        `fit`, `evaluate` and `predict` do so themselves. The name is KerasHub's.

        Args:
            x, y, sample_weight: a batch of rows, as for `fit`, also in a graph of TensorFlow.
            labelled: bool, whether it is for training. Only tasks that make labels of texts
                differ: `MaskedLM`, `TextEmbedder` and `Seq2Seq`.

        Returns:
            the inputs of the model; with labels a tuple (inputs, labels), with weights
            (inputs, labels, weights).
        """
        self.check_parts()
        return pack_elements(self.data, labelled)((x, y, sample_weight))
