"""The three problem types of a `TextClassifier`: classes, sets of labels, numbers.

The names of problem types are the values of `problem_type` in configurations of Hugging Face.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import keras
import numpy as np

from keras_bert_suite.annotations import Activation
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.heads.base.answers import ClassAnswers, LabelSetAnswers, NumberAnswers
from keras_bert_suite.heads.base.labels import Classes, LabelSets, NamedLabels, Numbers
from keras_bert_suite.training import (
    ClassAccuracy,
    ClassCrossentropy,
    LabelSetF1,
    LabelwiseLoss,
)


class ProblemType(ABC):
    """Says which labels and answers a classifier has, and how it is trained."""

    #: Hugging Face's name.
    name: str

    #: The classes of the labels and of the answers.
    labels_cls: type[NamedLabels]
    answers_cls: type[ClassAnswers]

    #: The smallest number of labels, or of targets.
    fewest_labels: int

    #: The activations that the outputs may have, besides None for logits.
    activations: tuple[str, ...] = ()

    @abstractmethod
    def make_loss(self, from_logits: bool) -> keras.losses.Loss:
        """The loss that `compile` takes for "auto"."""

    @abstractmethod
    def make_metrics(self, from_logits: bool) -> list[keras.metrics.Metric]:
        """The metrics that `compile` takes for "auto"."""

    def check_activation(self, activation: Activation | None) -> str | None:
        """Checks the argument `activation` of a classifier, and finds its name; None for logits."""
        if isinstance(activation, dict):
            activation = keras.activations.deserialize(activation)
        name = getattr(activation, "__name__", activation)
        if name in (None, "linear"):
            return None
        if name not in self.activations:
            wanted = " or ".join(["None, for logits,", *map(repr, self.activations)])
            raise ValueError(
                f"activation must be {wanted} with problem_type={self.name!r}, got {name!r}."
            )
        return name

    def make_answers(
        self, labels: NamedLabels, are_logits: bool, thresholds: Sequence[float] | None
    ) -> ClassAnswers:
        """The answers of a classifier, whose argument `thresholds` is checked."""
        if thresholds is None:
            return self.answers_cls(labels, are_logits)
        number = len(labels.names)
        if not self.has_thresholds(number):
            raise ValueError(
                f"thresholds are for two classes and for problem_type='{MultiLabel.name}', got "
                f"{thresholds} with problem_type={self.name!r} and {number} labels. Leave them out."
            )
        numbers = np.asarray(thresholds)
        if (
            numbers.shape != (number,)
            or numbers.dtype.kind not in "iuf"
            or not ((numbers >= 0) & (numbers <= 1)).all()
        ):
            raise ValueError(
                f"thresholds must be {number} numbers in [0, 1], one for each label, got "
                f"{str(thresholds)[:80]}."
            )
        if self.name == SingleLabel.name and abs(numbers.sum() - 1) > 1e-6:
            raise ValueError(
                f"The thresholds of two classes are a share of 1 each, got {list(thresholds)}. If "
                "the second class is the answer above 0.3: [0.7, 0.3]."
            )
        return self.answers_cls(labels, are_logits, [float(number) for number in numbers])

    def has_thresholds(self, num_labels: int) -> bool:
        """Whether answers depend on thresholds, which may be tuned."""
        return False


class SingleLabel(ProblemType):
    """Each row has one class."""

    name = "single_label_classification"
    labels_cls = Classes
    answers_cls = ClassAnswers
    fewest_labels = 2
    activations = ("softmax",)

    def has_thresholds(self, num_labels: int) -> bool:
        return num_labels == 2

    def make_loss(self, from_logits: bool) -> keras.losses.Loss:
        return ClassCrossentropy(from_logits=from_logits)

    def make_metrics(self, from_logits: bool) -> list[keras.metrics.Metric]:
        return [ClassAccuracy()]


class MultiLabel(ProblemType):
    """Each row has a set of labels, which may be empty."""

    name = "multi_label_classification"
    labels_cls = LabelSets
    answers_cls = LabelSetAnswers
    fewest_labels = 1
    activations = ("sigmoid",)

    def has_thresholds(self, num_labels: int) -> bool:
        return True

    def make_loss(self, from_logits: bool) -> keras.losses.Loss:
        return LabelwiseLoss(keras.losses.BinaryCrossentropy(from_logits=from_logits))

    def make_metrics(self, from_logits: bool) -> list[keras.metrics.Metric]:
        return [LabelSetF1("micro", from_logits), LabelSetF1("macro", from_logits)]


class Regression(ProblemType):
    """Each row has a number, or several."""

    name = "regression"
    labels_cls = Numbers
    answers_cls = NumberAnswers
    fewest_labels = 1

    def make_loss(self, from_logits: bool) -> keras.losses.Loss:
        return keras.losses.MeanSquaredError()

    def make_metrics(self, from_logits: bool) -> list[keras.metrics.Metric]:
        return [keras.metrics.MeanAbsoluteError()]


PROBLEM_TYPES: dict[str, ProblemType] = {
    problem.name: problem for problem in (SingleLabel(), MultiLabel(), Regression())
}


def find_problem_type(name: str) -> ProblemType:
    """The `ProblemType` of a name."""
    check_choice("problem_type", name, PROBLEM_TYPES)
    return PROBLEM_TYPES[name]
