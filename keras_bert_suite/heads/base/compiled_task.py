"""What a task is trained with: its optimizer, its loss and its metrics."""

import inspect
import warnings
from typing import Any

import keras

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import check_arguments, is_auto, with_article
from keras_bert_suite.heads.base.compile_arguments import METRICS, read_losses, read_metrics
from keras_bert_suite.heads.base.head import Head, make_no_parts
from keras_bert_suite.heads.base.inner_states import InnerStates
from keras_bert_suite.heads.base.replaced_modules import replace_modules
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.layer_groups import number_weights
from keras_bert_suite.replicas import in_scope_of_model
from keras_bert_suite.runs.packed_layout import check_encodes_whole_batches
from keras_bert_suite.runs.technique_step import set_technique
from keras_bert_suite.runs.trained_model import TrainedModel
from keras_bert_suite.runs.trained_weights import follow_weights
from keras_bert_suite.training import (
    AdamW,
    Divergence,
    LinearWarmupDecay,
    OutputForm,
    RateTable,
    Technique,
    forget_metrics,
    is_loss_of_keras,
    is_metric_of_keras,
    list_rates,
    read_loss,
    read_metric,
    set_head_rate,
    set_layer_rates,
    sum_before_clipping,
    track_finite_losses,
)
from keras_bert_suite.training.weight_rates import RATE_ADVICE


class CompiledTask(TrainedModel):
    """A `TrainedModel` with the defaults of a task for `compile`, and losses and metrics of Keras.

    A task says what its outputs are, see `find_output_form`. The labels and the outputs then reach
    a loss or a metric of Keras as it expects them.
    """

    #: How the parts are made, and how the task is trained.
    HEAD = Head(task="Task", make_parts=make_no_parts)
    backbone: Any
    data: Any

    @property
    def head_learning_rate(self) -> float | None:
        """float, the peak for the weights outside of the backbone; None for the common peak."""
        return self.HEAD.head_learning_rate

    def make_optimizer(
        self,
        learning_rate: float | None = None,
        warmup_ratio: float | None = None,
        **kwargs: Any,
    ) -> keras.optimizers.Optimizer:
        """The optimizer that `compile` takes for "auto", or one with other values.

        Args:
            learning_rate, warmup_ratio: floats; None for the values of the `HEAD`, or for the
                learning rate of an adaptation.
            **kwargs: further arguments of `AdamW`.
        """
        schedule = LinearWarmupDecay(
            self._find_usual_rate() if learning_rate is None else learning_rate,
            warmup_ratio=self.HEAD.warmup_ratio if warmup_ratio is None else warmup_ratio,
        )
        return AdamW(schedule, **{"rate_multipliers": self.HEAD.rate_multipliers, **kwargs})

    def _find_usual_rate(self) -> float:
        name = getattr(self, "adapter", None)
        if name is None:
            return self.HEAD.learning_rate
        return self.backbone.adapters[name].adaptation.learning_rate

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

    def find_divergence(self) -> Divergence | None:
        """How far the predictions of two passes are apart, for techniques such as `RDrop`.

        None if the task has several outputs, or outputs that are no predictions.
        """
        if isinstance(self.output, dict) and len(self.output) > 1:
            return None
        return Divergence.of_form(self.find_output_form())

    #: The one of several outputs that a `Distillation` compares.
    taught_output: str | None = None

    def find_inner_states(self) -> InnerStates:
        """The outputs and the hidden states in one pass, for techniques such as `Distillation`."""
        check_encodes_whole_batches(self, "hidden states cannot be compared", "`terms`")
        return InnerStates(self)

    def replace_modules(self, teacher: Any = None) -> keras.Model:
        """This task, whose layers a `Theseus` replaces, or a `LayerDrop` leaves out."""
        check_encodes_whole_batches(self, "its layers cannot be replaced", "`technique`")
        return replace_modules(self, teacher)

    #: Whether the loss has a gradient that can be differentiated, for `GradientPenalty`.
    has_second_derivative = True

    def split_at_vectors(self) -> tuple[keras.Model, keras.Model] | None:
        """The model up to the vectors of rows, and the model after them, for `Mixup`.

        The second takes what the first returns. None if the last layer takes no vector of a row.
        """
        return None

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
                f"{with_article(self, 'A')} cannot be trained with the loss {loss!r}. "
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
                f"The metric {metric!r} of Keras is not for {with_article(self)}. "
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
            technique: how the gradients of a batch are made, such as `FGM()`. None for one
                forward and one backward pass.
            **kwargs: see `keras.Model.compile`. Metrics are `make_metrics()` by default, or for
                "auto".

        Raises:
            ValueError: if a loss or a metric takes logits and the outputs are probabilities, or a
                loss the reverse; if a loss or a metric of Keras is for other labels; if the task
                cannot be trained by `technique`; if `optimizer` has no rate for a head, see
                `set_head_rate`, or there is no head to train; or if it has a `layer_decay`, and the
                encoder no layers to number, see `find_layer_groups`.
        """
        known = _list_compile_arguments(type(self))
        check_arguments(f"{type(self).__name__}.compile", kwargs, known)
        set_technique(self, technique)
        if head_learning_rate is not None and not self._list_head_weights():
            raise ValueError(
                f"head_learning_rate={head_learning_rate} is for the weights outside of the "
                f"encoder, and this {type(self).__name__} has none to train there. Leave it out."
            )
        if getattr(self, "adapter", None) is not None:
            self.train_own_adapter()
        if is_auto(optimizer):
            optimizer = self.make_optimizer()
            if head_learning_rate is None:
                head_learning_rate = self.head_learning_rate
        if head_learning_rate is not None:
            self.set_head_rates(optimizer, head_learning_rate)
        self._set_layer_rates(optimizer)
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
        kwargs.update(read_metrics(self, **given))
        forget_metrics(self)
        self._has_common_weights = False
        self._given_jit_compile = kwargs.get("jit_compile", "auto")
        super().compile(optimizer=optimizer, loss=loss, **kwargs)
        if loss is not None:
            track_finite_losses(self)
        if self.optimizer is not None:
            sum_before_clipping(self.optimizer)

    def set_head_rates(self, optimizer: Any, rate: float) -> None:
        """Gives the weights outside of the backbone another peak of the learning rate.

        Frozen weights have it, too, for when they are thawed.
        """
        set_head_rate(optimizer, self._list_head_weights(), rate)

    def _list_head_weights(self):
        """The weights outside of the backbone."""
        encoder = {id(variable) for variable in self.backbone.variables}
        return [weight for weight in self.weights if id(weight) not in encoder]

    def _set_layer_rates(self, optimizer):
        """Tells an optimizer with a `layer_decay` to which layer each weight belongs."""
        set_layer_rates(
            optimizer,
            [variable.path for variable in (*self.variables, *self.trainable_variables)],
            lambda: number_weights(Encoder.of(self.backbone), "layer_decay"),
        )

    @in_scope_of_model
    def rates(self) -> RateTable:
        """The learning rate and the weight decay of each weight, as the optimizer has them.

        ```python
        classifier.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-4), layer_decay=0.8))
        print(classifier.rates())
        ```

        The rates are peaks. They have the factors of `layer_decay`, `head_learning_rate` and
        `rate_multipliers`. Weights that are frozen now have the rate 0.

        Returns:
            `RateTable` of `WeightRate`; `print` shows a line for each weight.

        Raises:
            ValueError: if the task has no optimizer yet, or if the optimizer cannot train it.
        """
        if self.optimizer is None:
            raise ValueError(
                f"{with_article(self, 'A')} has no optimizer before `compile`. Call `compile`."
            )
        follow_weights(self)
        trained = self.trainable_variables
        own = {id(weight) for weight in self.weights}
        further = [variable for variable in trained if id(variable) not in own]
        return list_rates(self.optimizer, [*self.weights, *further], trained)

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
            self.compile(**keras.saving.deserialize_keras_object(_for_this_backend(config)))
        follow_weights(self)


def _for_this_backend(config):
    """The configuration without the classes that Keras' optimizers have under PyTorch alone.

    Keras writes them into files by their private names, also within a `LossScaleOptimizer`.
    `keras.optimizers.Adam` is of the right class everywhere.
    """
    if isinstance(config, (list, tuple)):
        return [_for_this_backend(value) for value in config]
    if not isinstance(config, dict):
        return config
    config = {name: _for_this_backend(value) for name, value in config.items()}
    if str(config.get("module")).startswith("keras.src.backend.torch.optimizers"):
        config["module"] = "keras.optimizers"
    return config


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
