"""How the labels and the outputs of a task meet in a loss or a metric."""

import dataclasses
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.training.losses import find_ids, is_one_hot


@dataclasses.dataclass(frozen=True)
class OutputForm:
    """The form of an output of a task, and of its encoded labels.

    Attributes:
        kind: "classes", with outputs (..., C) and labels that are class ids (...), or one-hot or
            soft labels (..., C); "label sets", with outputs and labels of 0 and 1 (B, C); or
            "numbers", with outputs and labels (B, T); or "others", which losses and metrics get as
            they are.
        from_logits: bool, whether the outputs are logits, and not probabilities.
        size: int, C or T. None if it differs between batches: the classes are then places, such as
            tokens or candidates.
        are_tokens: bool, whether weights say which predictions count. Labels and weights are then
            (B, L), and for "label sets" the outputs, too. For "numbers" labels are (B, L, T).
    """

    kind: str
    from_logits: bool = True
    size: int | None = None
    are_tokens: bool = False

    @property
    def activation(self) -> str | None:
        """str, the name of the function from outputs to probabilities; None if they are."""
        names = {"classes": "softmax", "label sets": "sigmoid"}
        return names.get(self.kind) if self.from_logits else None

    def name_outputs(self) -> str:
        """The outputs, for a message, such as "classes as logits"."""
        return f"{self.kind} as {'logits' if self.from_logits else 'probabilities'}"

    def name_labels(self) -> str:
        """The labels, for a message."""
        if self.kind == "classes" and self.size is None:
            return "labels that are places among tokens or candidates"
        if self.kind == "numbers":
            return f"a regression with {self.size} output{'s' * (self.size != 1)}"
        if self.are_tokens:
            return "labels of tokens"
        return "classes" if self.kind == "classes" else "sets of labels"

    def find_probabilities(self, outputs: Tensor) -> Tensor:
        """The probabilities of outputs, in float32."""
        outputs = ops.cast(outputs, "float32")
        if self.activation is None:
            return outputs
        return keras.activations.get(self.activation)(outputs)

    def flatten(self, y_true: Any, y_pred: Any, weights: Any) -> tuple[Any, Any, Any]:
        """Makes a row of each prediction: labels (N,) or (N, C), outputs (N, C), weights (N,)."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if self.are_tokens and self.kind == "label sets":
            y_true, y_pred = y_true[..., None], y_pred[..., None]
        if len(y_pred.shape) <= 2:
            return y_true, y_pred, weights
        size = ops.shape(y_pred)[-1]
        if weights is not None:
            weights = ops.convert_to_tensor(weights)
            while len(weights.shape) < len(y_pred.shape) - 1:
                weights = weights[..., None]
            weights = ops.reshape(ops.broadcast_to(weights, ops.shape(y_pred)[:-1]), (-1,))
        are_rows = len(y_true.shape) == len(y_pred.shape)
        y_true = ops.reshape(y_true, (-1, size) if are_rows else (-1,))
        return y_true, ops.reshape(y_pred, (-1, size)), weights


def find_shares(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """float32 (..., C), one-hot labels. One-hot and soft labels stay as they are."""
    if is_one_hot(y_true, y_pred):
        return ops.cast(y_true, "float32")
    return mark_classes(find_ids(y_true, y_pred), y_pred)


def mark_classes(ids: Tensor, y_pred: Tensor) -> Tensor:
    """float32 (..., C), one-hot rows of class ids (...)."""
    return ops.one_hot(ids, ops.shape(y_pred)[-1], dtype="float32")
