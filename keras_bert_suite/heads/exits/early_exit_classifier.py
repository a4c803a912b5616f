"""Classifies texts by the first layer of an encoder that is sure enough."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import check_choice, check_share
from keras_bert_suite.heads import exits
from keras_bert_suite.heads.base.input_checks import EncoderInputs, check_in_memory
from keras_bert_suite.heads.base.inspection import inspect_rows
from keras_bert_suite.heads.base.labelled_task import LabelledTask, make_head, resolve_label_names
from keras_bert_suite.heads.base.part_checks import check_summary_place
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.heads.exits.exit_layers import check_exit_layers, make_poolers
from keras_bert_suite.heads.exits.from_classifier import copy_classifier
from keras_bert_suite.heads.exits.losses import ExitDistillation, ExitLoss
from keras_bert_suite.heads.exits.rules import METHODS, check_problem, find_exits
from keras_bert_suite.heads.exits.stages import Stages, make_stage_models
from keras_bert_suite.heads.texts.problem_types import Regression, SingleLabel, find_problem_type
from keras_bert_suite.layers.poolings.pooling import take_summary
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.batches import read

#: How near two numbers of PABEE are, if a regression names no `tolerance`.
TOLERANCE = 0.1


class ExitPoint(NamedTuple):
    """A point of the curve of an `EarlyExitClassifier`.

    Attributes:
        threshold: int or float.
        score: float, the accuracy; of numbers Pearson's correlation.
        layers: float, the mean number of layers that a row has used.
    """

    threshold: int | float
    score: float
    layers: float


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class EarlyExitClassifier(LabelledTask, keras_hub.models.Task):
    """A `TextClassifier` with a head after each layer, where rows that are done leave the encoder.

    `predict` runs a batch layer by layer. At each exit, rows that are done leave the batch, and the
    others go on. So easy rows cost a few layers, and an answer does not depend on the other rows.

    `method` says how the exits are trained, and when a row leaves:

    - "pabee": all exits and the encoder together, by the sum of their losses with the weights j /
      sum(j) for the layers j. A row leaves once `threshold` exits in succession had the answer of
      the exit before them.
    - "deebert": the exits of a trained classifier, whose encoder stays. A row leaves once the
      entropy of its classes is below `threshold`, in nats.
    - "fastbert": as "deebert", but the exits learn the classes of the last exit, and not the
      labels. The entropy is divided by ln C, so that `threshold` is between 0 and 1.

    `from_classifier` makes one of a `TextClassifier`. `tune_exits` chooses the threshold.

    Each exit has a tanh layer and a classification layer on the state of the token that stands for
    the row. The last exit is the head of a `TextClassifier`. PABEE's code has one tanh layer for
    all exits, and FastBERT a small transformer layer in each.

    Args:
        backbone: an encoder of this package with transformer layers, 2 or more.
        num_classes, label_names, preprocessor, dropout, input_names: as for `TextClassifier`.
        method: "pabee", "deebert" or "fastbert".
        problem_type: "single_label_classification", or for "pabee" also "regression".
        exit_layers: tuple of ints, increasing: the layers, counted from 1, after which there are
            exits before the last. None: after each layer.
        threshold: int (of "pabee") or float, see above. 0.0, or for "pabee" the number of exits:
            all rows use all layers. None: `predict` is an error, until it is set or tuned.
        tolerance: float, of a regression: two numbers are the same answer if they differ by less.
            None for 0.1. It has the unit of the labels.

    Outputs of the model: float32 (B, E, C), the logits of all exits. `predict`: float32 (B, C), the
    logits of the exit that each row has left by.

    Example:
    ```python
    classifier = EarlyExitClassifier.from_classifier(trained, method="deebert")
    classifier.fit(texts, labels, epochs=3)
    classifier.tune_exits(dev_texts, dev_labels, max_loss=0.01)
    classifier.predict_labels(["a gripping, funny film"])
    ```

    Raises:
        ValueError: if the encoder has no layers to leave after; if `exit_layers` or `threshold` do
            not fit; for sets of labels; for numbers without "pabee"; or for a `tolerance` without
            numbers.

    Sources: PABEE, Zhou et al., 2020 (https://arxiv.org/abs/2006.04152). DeeBERT, Xin et al., 2020
    (https://arxiv.org/abs/2004.12993). FastBERT, Liu et al., 2020
    (https://arxiv.org/abs/2004.02178).
    """

    HEAD = exits.HEAD
    head_name = "classifier"
    head_defaults = {"input_names": None, "problem_type": SingleLabel.name, "threshold": None}
    loss_advice = "It has the outputs of several exits. Leave `loss` out."
    metric_advice = "It has the outputs of several exits. `score` and `tune_exits` have scores."
    _stages: Stages | None = None

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        method: str = "pabee",
        problem_type: str = SingleLabel.name,
        exit_layers: Sequence[int] | None = None,
        threshold: float | None = None,
        tolerance: float | None = None,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_choice("method", method, METHODS)
        check_problem(problem_type, method, tolerance)
        problem = find_problem_type(problem_type)
        label_names = resolve_label_names(
            type(self).__name__, num_classes, label_names, problem.fewest_labels
        )
        encoder = Encoder.of(backbone)
        exit_layers = check_exit_layers(encoder, exit_layers)
        check_summary_place(backbone, encoder.summary_place)

        # === Layers ===
        self.backbone = backbone
        self.exit_poolers = make_poolers(backbone, exit_layers)
        self.exit_classifiers = [
            make_head(backbone, len(label_names), dropout, f"exit_{layer}")[1]
            for layer in exit_layers
        ]
        self.classifier_dropout, self.classifier = make_head(
            backbone, len(label_names), dropout, self.head_name
        )
        # The losses are computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="predictions")

        # === Functional Model ===
        inputs = backbone.input
        states = encoder.make_layer_model().output
        layers = keras.Model(
            inputs, [*(states[i] for i in exit_layers), encoder.trace_summary()], name="exit_states"
        )
        layers.backbone = backbone  # A weight that no output depends on is one of the task, too.
        *states, summary = layers(inputs)
        logits = self._classify(states, summary, inputs["padding_mask"])
        outputs = self.output_activation(ops.stack(logits, axis=1))

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            EncoderInputs.of(backbone, encoder.summary_place),
            labels=label_names,
            problem_type=problem_type,
            input_names=input_names,
        )

        # === Config ===
        # `compile` reads it.
        self.problem, self._method = problem, METHODS[method]
        self.method = method
        self.exit_layers = exit_layers
        self.tolerance = tolerance
        self.dropout = dropout
        self.threshold = threshold
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    def _classify(self, states: list[Tensor], summary: Tensor, mask: Tensor) -> list[Tensor]:
        """The logits of all exits, list of E symbolic (B, C).

        Args:
            states: list of E - 1 symbolic (B, L, H).
            summary: symbolic (B, P), the vectors of the last exit.
            mask: symbolic int (B, L).
        """
        place = Encoder.of(self.backbone).summary_place
        assert place is not None
        drop, logits = self.classifier_dropout, []
        for x, pool, head in zip(states, self.exit_poolers, self.exit_classifiers, strict=True):
            pooled = pool(take_summary(x, mask, place, f"{head.name}_summary"))
            logits.append(head(drop(pooled)))
        return [*logits, self.classifier(drop(summary))]

    @classmethod
    def from_classifier(
        cls,
        classifier: Any,
        method: str = "deebert",
        *,
        exit_layers: Sequence[int] | None = None,
    ) -> Self:
        """Puts exits on a copy of a trained `TextClassifier`, and of its encoder.

        With "deebert" and "fastbert" all but the exits is frozen, also an adapter of `adapt`, which
        is copied. The tanh layer of each exit begins as the pooler of the encoder, if it has one of
        this form, as in DeeBERT's code.

        Args:
            classifier: `TextClassifier` of classes or numbers, on an encoder of this package.
            method, exit_layers: as for the constructor.

        Raises:
            ValueError: as the constructor; for a classifier with a `pooling`, `features` or an
                `activation`; or if it is quantized or has LoRA of Keras (`enable_lora`).
        """
        return copy_classifier(cls, classifier, method, exit_layers)

    def _take_adapter(self, name: str) -> None:
        super()._take_adapter(name)
        if not self._method.trains_all:
            self.backbone.trainable = False

    def _check_adaptable(self, adaptation: Any) -> Any:
        if adaptation is not None and not self._method.trains_all:
            raise ValueError(
                f"method={self.method!r} trains the exits alone, and no adapter. `adapt` and train "
                "the TextClassifier, and call `from_classifier` after it; or pass method='pabee', "
                "which trains an adapter with the exits."
            )
        return super()._check_adaptable(adaptation)

    @property
    def problem_type(self) -> str:
        """Hugging Face's name of the kind of answers."""
        return self.problem.name

    @property
    def threshold(self) -> int | float | None:
        """int or float, when a row leaves; None as long as it is neither set nor tuned."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: float | None) -> None:
        if isinstance(threshold, np.generic):  # Files keep numbers of Python.
            threshold = threshold.item()
        if threshold is not None:
            num_exits = len(self.exit_layers) + 1
            self._method.check_threshold(threshold, num_exits, self.num_classes)
        self._threshold = threshold

    def find_rule(self) -> Any:
        """`Patience` or `Certainty` with the `threshold`.

        Raises:
            ValueError: if there is no threshold.
        """
        if self.threshold is None:
            raise ValueError(
                f"This {type(self).__name__} has no threshold, so it is not known when a row "
                "leaves. Call `tune_exits(dev_texts, dev_labels)`, or set `threshold`. "
                f"{self._method.list_thresholds(np.zeros((1, len(self.exit_layers) + 1, 2)))[0]} "
                "is for all layers."
            )
        return self._make_rule(self.threshold)

    def _make_rule(self, threshold):
        of_numbers = self.problem_type == Regression.name
        tolerance = (self.tolerance or TOLERANCE) if of_numbers else None
        return self._method.make_rule(threshold, tolerance)

    def find_stages(self) -> Stages:
        """The models between the exits, made once."""
        if self._stages is None:
            encoder, inputs = Encoder.of(self.backbone), self.backbone.input
            hidden = encoder.hidden_states or ()
            states = [hidden[layer] for layer in self.exit_layers]
            # An exit reads tokens alone. The states of prompts go on to the next stage.
            read = encoder.make_layer_model().output
            seen = [read[layer] for layer in self.exit_layers]
            logits = self._classify(seen, encoder.trace_summary(), inputs["padding_mask"])
            layers = [*self.exit_layers, len(encoder.list_calls())]
            self._stages = Stages(make_stage_models(self, states, logits), layers)
        return self._stages

    def drop_functions(self) -> None:
        """See `SavedTask.drop_functions`."""
        super().drop_functions()
        self._stages = None

    def make_loss(self) -> keras.losses.Loss:
        """`ExitLoss` by the weights of the `method`, or `ExitDistillation`."""
        if self._method.is_distilled:
            return ExitDistillation()
        loss = self.problem.make_loss(from_logits=True)
        if not self._method.trains_all:
            return ExitLoss(loss, [*[1.0] * len(self.exit_layers), 0.0])
        layers = [*self.exit_layers, len(Encoder.of(self.backbone).list_calls())]
        return ExitLoss(loss, [layer / sum(layers) for layer in layers])

    def find_divergence(self) -> None:
        """None: several exits have no common prediction."""

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains the exits, and with "pabee" also the encoder; see `Task.fit`.

        With "fastbert" the labels change nothing. Unlabelled texts may have any, such as the
        answers of the trained classifier.

        Raises:
            ValueError: as `Task.fit`; or with "deebert" and "fastbert" if more than the exits
                would be trained.
        """
        of_exits = {
            variable.path
            for layer in (*self.exit_poolers, *self.exit_classifiers)
            for variable in layer.variables
        }
        others = [v.path for v in self.trainable_variables if v.path not in of_exits]
        if others and not self._method.trains_all:
            raise ValueError(
                f"method={self.method!r} trains the exits of a trained classifier, and would "
                f"change {others[0]} and {len(others) - 1} more. Make the task by "
                "`from_classifier`; or, on a trained encoder, set `trainable = False` of "
                "`backbone` and `classifier`, and compile."
            )
        return super().fit(*args, **kwargs)

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        return_layers: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The logits of the exit that each row has left by; see `Task.predict`.

        Args:
            x, batch_size, steps, **kwargs: as for `Task.predict`.
            return_layers: bool, whether to return how many layers each row has used, too.

        Returns:
            float32 (N, C); or with `return_layers` a tuple of it and int32 (N,).

        Raises:
            ValueError: as `Task.predict`; or if there is no `threshold`.
        """
        if not return_layers:
            return self.predict_with(self.answers.decode, x, batch_size, steps, **kwargs)
        return self._predict_exits(
            lambda outputs, rows: (outputs["logits"], outputs["layers"]),
            x,
            batch_size,
            steps,
            **kwargs,
        )

    def predict_with(self, decode: Any, *args: Any, **kwargs: Any) -> Any:
        """See `Task.predict_with`. The outputs are the logits float32 (N, C)."""
        return self._predict_exits(
            lambda outputs, rows: decode(outputs["logits"], rows), *args, **kwargs
        )

    def _predict_exits(self, decode, *args, **kwargs):
        rule, stages = self.find_rule(), self.find_stages()

        def read(outputs, rows):
            if not isinstance(outputs, dict):  # The outputs of the model, (0, E, C), without a row.
                outputs = {"logits": outputs[:, -1], "layers": np.zeros(0, "int32")}
            return decode(outputs, rows)

        run = functools.partial(stages.predict, rule=rule)
        return super().predict_with(read, *args, run=run, **kwargs)

    def predict_labels(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> Any:
        """The answer for each row: a list of N names; for numbers float32 (N,) or (N, C).

        Args:
            x, batch_size, steps, **kwargs: as for `predict`.
        """
        return self.predict_with(self.answers.name, x, batch_size, steps, **kwargs)

    predict_probabilities = predict_probabilities

    def score(self, x: Inputs, y: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Scores the answers for rows, with the `threshold`; see `TextClassifier.score`.

        Args:
            x, y: as for `fit`, in memory.
            batch_size: int, 32 by default.
        """
        return self.score_with(self.answers.score, x, y, batch_size)

    inspect = inspect_rows

    def measure_exits(self, x: Inputs, y: Labels, batch_size: int | None = None) -> list[ExitPoint]:
        """The curve of the score over the layers used, on labelled rows.

        All layers are computed once, for all rows.

        Args:
            x, y: as for `fit`, in memory.
            batch_size: int, 32 by default.

        Returns:
            list of `ExitPoint`, from the most layers to the fewest, about 50 of an entropy. At the
            first, no row leaves early.
        """
        check_in_memory(x)
        labels = read(self, x, y, labelled=True).labels
        logits = super().predict_with(lambda outputs, rows: outputs, x, batch_size, verbose=0)
        layers, number = self.find_stages().layers, np.arange(len(logits))
        curve = []
        for threshold in self._method.list_thresholds(logits):
            left = find_exits(self._make_rule(threshold), logits)
            score = self.answers.score(logits[number, left], None, labels)
            score = score["pearson" if self.problem_type == Regression.name else "accuracy"]
            curve.append(ExitPoint(threshold, float(score), float(layers[left].mean())))
        return curve

    def tune_exits(
        self,
        x: Inputs,
        y: Labels,
        batch_size: int | None = None,
        *,
        max_loss: float = 0.01,
    ) -> list[ExitPoint]:
        """Sets the threshold that uses the fewest layers within a given loss of score.

        Tune on rows that were not trained on. The threshold is saved with the task, and exports
        made afterwards use it.

        Args:
            x, y, batch_size: as for `measure_exits`.
            max_loss: float in [0, 1], how much of the score of all layers may be lost: 0.01 is one
                row in 100.

        Returns:
            the curve, as from `measure_exits`.

        Raises:
            ValueError: as `score`, or if `max_loss` is out of its range.
        """
        check_share("max_loss", max_loss)
        curve = self.measure_exits(x, y, batch_size)
        within = [point for point in curve if point.score >= curve[0].score - max_loss]
        self.threshold = min(within, key=lambda point: (point.layers, -point.score)).threshold
        return curve

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        return arguments, [*new_parts, "exit_.*"]
