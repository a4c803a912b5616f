"""The three problem types of a `TextClassifier`: classes, sets of labels, numbers.

The names of problem types are the values of `problem_type` in configurations of Hugging Face.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Activation, Labels, Tensor
from keras_bert_suite.data.class_weights import read_class_weights, weight_rows
from keras_bert_suite.data.label_encoding import encode_labels
from keras_bert_suite.data.label_scores import score_classes, score_label_sets, score_numbers
from keras_bert_suite.data.label_sets import (
    choose_thresholds,
    encode_label_sets,
    read_batch_of_label_sets,
    read_label_sets,
)
from keras_bert_suite.data.targets import encode_targets
from keras_bert_suite.tasks.base.labelled_task import serve_classes
from keras_bert_suite.training import (
    ClassAccuracy,
    ClassCrossentropy,
    LabelSetF1,
    LabelwiseLoss,
    take_class_ids,
)


class ProblemType(ABC):
    """Says how a classifier reads labels, is trained, and turns its outputs into answers.

    The methods take the classifier as `task`, and read its `label_names`, `returns_logits`, `loss`
    and `thresholds`.
    """

    #: Hugging Face's name.
    name: str

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

    def wrap_loss(self, loss: Any) -> Any:
        """Makes a loss of the user fit the encoded labels."""
        return loss

    def read_labels(self, labels: Labels) -> Labels:
        """Reads the labels of rows in memory as a column."""
        return labels

    def read_batch(self, labels: Labels) -> Labels:
        """Reads the labels of a batch of a dataset as a column."""
        return labels

    @abstractmethod
    def encode_labels(self, labels: Labels, label_names: Sequence[str]) -> Labels:
        """Turns a column of labels into labels for the loss, and checks them."""

    @abstractmethod
    def class_weighting(
        self, class_weight: Mapping[Any, float], task: Any
    ) -> Callable[[Tensor], Tensor]:
        """The function from encoded labels to sample weights."""

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

    def check_thresholds(
        self, thresholds: Sequence[float] | None, label_names: Sequence[str]
    ) -> list[float] | None:
        """Checks the argument `thresholds` of a classifier, and completes it."""
        if thresholds is not None:
            raise ValueError(
                f"thresholds are for problem_type='{MultiLabel.name}', got {thresholds} with "
                f"problem_type={self.name!r}. Leave them out."
            )
        return None

    @abstractmethod
    def serve(self, outputs: Tensor, task: Any) -> dict[str, Tensor]:
        """Turns outputs of the model (B, C) into the answers of a server."""

    @abstractmethod
    def name_answers(self, outputs: np.ndarray, task: Any) -> Any:
        """Turns outputs of the model (N, C) into a readable answer for each row."""

    @abstractmethod
    def score(self, outputs: np.ndarray, labels: np.ndarray, task: Any) -> dict[str, Any]:
        """Scores outputs of the model (N, C) against encoded labels."""

    def tune_thresholds(self, outputs: np.ndarray, labels: np.ndarray, task: Any) -> list[float]:
        """Finds the best threshold of each label from outputs of the model and encoded labels."""
        raise ValueError(
            f"A classifier with problem_type={self.name!r} has no thresholds. They are for "
            f"problem_type='{MultiLabel.name}'."
        )


class SingleLabel(ProblemType):
    """Each row has one class.

    Labels are class ids, names, or one-hot or soft labels (N, C).
    """

    name = "single_label_classification"
    fewest_labels = 2
    activations = ("softmax",)

    def make_loss(self, from_logits: bool) -> keras.losses.Loss:
        return ClassCrossentropy(from_logits=from_logits)

    def make_metrics(self, from_logits: bool) -> list[keras.metrics.Metric]:
        return [ClassAccuracy()]

    def wrap_loss(self, loss: Any) -> Any:
        if type(loss) is keras.losses.SparseCategoricalCrossentropy:
            return ClassCrossentropy.from_config(loss.get_config())
        return take_class_ids(loss)

    def encode_labels(self, labels: Labels, label_names: Sequence[str]) -> Labels:
        return encode_labels(labels, label_names)

    def class_weighting(
        self, class_weight: Mapping[Any, float], task: Any
    ) -> Callable[[Tensor], Tensor]:
        weights = read_class_weights(class_weight, task.label_names)
        return lambda labels: weight_rows(labels, weights)

    def serve(self, outputs: Tensor, task: Any) -> dict[str, Tensor]:
        return serve_classes(outputs, task.returns_logits)

    def name_answers(self, outputs: np.ndarray, task: Any) -> list[str]:
        return [task.label_names[i] for i in outputs.argmax(axis=-1)]

    def score(self, outputs: np.ndarray, labels: np.ndarray, task: Any) -> dict[str, Any]:
        labels = labels if labels.ndim == 1 else labels.argmax(axis=-1)
        return score_classes(labels, outputs.argmax(axis=-1), task.label_names)


class MultiLabel(ProblemType):
    """Each row has a set of labels, which may be empty.

    Labels are a list of names or ids for each row, or a 0/1 matrix (N, C).
    """

    name = "multi_label_classification"
    fewest_labels = 1
    activations = ("sigmoid",)

    def make_loss(self, from_logits: bool) -> keras.losses.Loss:
        return LabelwiseLoss(keras.losses.BinaryCrossentropy(from_logits=from_logits))

    def make_metrics(self, from_logits: bool) -> list[keras.metrics.Metric]:
        return [LabelSetF1("micro", from_logits), LabelSetF1("macro", from_logits)]

    def read_labels(self, labels: Labels) -> Labels:
        return read_label_sets(labels)

    def read_batch(self, labels: Labels) -> Labels:
        return read_batch_of_label_sets(labels)

    def encode_labels(self, labels: Labels, label_names: Sequence[str]) -> Labels:
        return encode_label_sets(labels, label_names)

    def class_weighting(
        self, class_weight: Mapping[Any, float], task: Any
    ) -> Callable[[Tensor], Tensor]:
        """The weight of a class counts only in rows with this label, as PyTorch's `pos_weight`."""
        if not isinstance(task.loss, LabelwiseLoss):
            raise ValueError(
                "class_weight weights the labels of a row by themselves, which the loss "
                f"{type(task.loss).__name__} does not keep. Compile with loss=LabelwiseLoss(loss), "
                "which keeps the loss of each label."
            )
        weights = read_class_weights(class_weight, task.label_names)
        return lambda labels: 1.0 + labels * (weights - 1.0)

    def check_thresholds(
        self, thresholds: Sequence[float] | None, label_names: Sequence[str]
    ) -> list[float] | None:
        if thresholds is None:
            return [0.5] * len(label_names)
        numbers = np.asarray(thresholds)
        if (
            numbers.shape != (len(label_names),)
            or numbers.dtype.kind not in "iuf"
            or not ((numbers >= 0) & (numbers <= 1)).all()
        ):
            raise ValueError(
                f"thresholds must be {len(label_names)} numbers in [0, 1], one for each label, got "
                f"{str(thresholds)[:80]}."
            )
        return [float(number) for number in numbers]

    def serve(self, outputs: Tensor, task: Any) -> dict[str, Tensor]:
        probabilities = ops.sigmoid(outputs) if task.returns_logits else outputs
        return {
            "probabilities": probabilities,
            "is_label": ops.greater(probabilities, np.array(task.thresholds, "float32")),
        }

    def name_answers(self, outputs: np.ndarray, task: Any) -> list[list[str]]:
        return [
            [task.label_names[i] for i in np.flatnonzero(row)]
            for row in self._find_labels(outputs, task)
        ]

    def score(self, outputs: np.ndarray, labels: np.ndarray, task: Any) -> dict[str, Any]:
        return score_label_sets(labels > 0.5, self._find_labels(outputs, task), task.label_names)

    def tune_thresholds(self, outputs: np.ndarray, labels: np.ndarray, task: Any) -> list[float]:
        return choose_thresholds(labels, _find_probabilities(outputs, task)).tolist()

    def _find_labels(self, outputs, task):
        """bool (N, C), whether a row has a label."""
        return _find_probabilities(outputs, task) > np.array(task.thresholds, "float32")


class Regression(ProblemType):
    """Each row has a number, or several. Labels are floats (N,) for one target, or (N, T)."""

    name = "regression"
    fewest_labels = 1

    def make_loss(self, from_logits: bool) -> keras.losses.Loss:
        return keras.losses.MeanSquaredError()

    def make_metrics(self, from_logits: bool) -> list[keras.metrics.Metric]:
        return [keras.metrics.MeanAbsoluteError()]

    def encode_labels(self, labels: Labels, label_names: Sequence[str]) -> Labels:
        return encode_targets(labels, len(label_names))

    def class_weighting(
        self, class_weight: Mapping[Any, float], task: Any
    ) -> Callable[[Tensor], Tensor]:
        raise ValueError(
            "A regression has no classes, so class_weight must be None. Pass `sample_weight`, a "
            "weight for each row."
        )

    def serve(self, outputs: Tensor, task: Any) -> dict[str, Tensor]:
        return {"scores": outputs}

    def name_answers(self, outputs: np.ndarray, task: Any) -> np.ndarray:
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def score(self, outputs: np.ndarray, labels: np.ndarray, task: Any) -> dict[str, Any]:
        return score_numbers(labels, outputs)


def _find_probabilities(outputs, task):
    """float32 (N, C), the probabilities, by the same sigmoid as in a served model."""
    if not task.returns_logits:
        return outputs
    return ops.convert_to_numpy(ops.sigmoid(outputs))


PROBLEM_TYPES: dict[str, ProblemType] = {
    problem.name: problem for problem in (SingleLabel(), MultiLabel(), Regression())
}


def find_problem_type(name: str) -> ProblemType:
    """The `ProblemType` of a name."""
    if name not in PROBLEM_TYPES:
        raise ValueError(f"problem_type must be one of {', '.join(PROBLEM_TYPES)}, got {name!r}.")
    return PROBLEM_TYPES[name]
