"""The common base of tasks: their parts, and what users call."""

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import keras
import keras_hub

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import check_arguments, with_article
from keras_bert_suite.data.input_dataset import list_sources
from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.compiled_task import CompiledTask
from keras_bert_suite.heads.base.input_checks import EncoderInputs, check_in_memory
from keras_bert_suite.heads.base.part_checks import (
    check_encoder,
    check_preprocessor,
    check_takes_condition,
    check_takes_frames,
)
from keras_bert_suite.heads.base.preset_task import PresetTask
from keras_bert_suite.layers import PackedSequences
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.replicas import in_scope_of_model, whole_batches
from keras_bert_suite.replicas.process_watch import ProcessWatch
from keras_bert_suite.runs import trainer
from keras_bert_suite.runs.batches import (
    evaluation_batches,
    hold_out,
    learn_rows,
    pack_elements,
    read,
    training_batches,
)
from keras_bert_suite.runs.packed_layout import check_can_pack_sequences, choose_layout
from keras_bert_suite.runs.prediction import PredictingModel

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


class Task(CompiledTask, PredictingModel, PackedSequences, PresetTask):
    """A task whose `fit`, `evaluate` and `predict` take rows in memory, or datasets of batches.

    A task is a model and two parts. `data` reads the arguments of users, and packs batches of them
    for the model. `answers` turns outputs of the model into labels, texts or scores.

    `predict` and its kin are in `PredictingModel`, `compile` in `CompiledTask`, the steps in
    `TrainedModel`, and `from_preset` in `PresetTask`.

    Rows in memory are batched with rows of similar length, in a fresh order each epoch. `fit`
    lays a schedule of open length over its steps, see `LinearWarmupDecay`.

    List `Task` before the KerasHub class in the bases. KerasHub's own `fit` would preprocess each
    batch a second time.
    """

    backbone_cls: type = BertBackbone
    preprocessor_cls = SegmentPacker
    data: Any
    answers: Any = RowAnswers()

    #: The names of layers after the outputs whose weights have a place for each label on each axis,
    #: such as a CRF. An `Ensemble` averages them.
    label_layers: tuple[str, ...] = ()

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
        check_takes_frames(self, value)
        check_takes_condition(self, value)
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
        self.train_own_adapter()
        with ProcessWatch("fit").watch(callbacks) as callbacks:
            given = read(self, x, y, sample_weight, labelled=True, batch_size=batch_size)
            if batch_size is None:
                batch_size = self.HEAD.batch_size
            given, held_out = hold_out(
                self, given, validation_data, validation_split, validation_batch_size
            )
            weigh = self._weigh_classes(class_weight, given)
            learn_rows(self, given, verbose)
            if held_out is not None:
                if validation_batch_size is None:
                    validation_batch_size = batch_size
                held_out = evaluation_batches(self.data, held_out, validation_batch_size)
            make_batches = functools.partial(
                training_batches,
                self.data,
                given,
                batch_size,
                shuffle,
                weigh=weigh,
                lay_out=choose_layout(self.backbone, self.find_prompt_length())
                if sequence_packing
                else None,
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
            return trainer.validate(
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
            f"Keras' export of format={format!r} would leave out what reads the texts of "
            f"{with_article(self)}. Call keras_bert_suite.{name}(task, {str(filepath)!r})."
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
