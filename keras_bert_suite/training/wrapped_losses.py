"""Losses that give the labels and the outputs of a task to losses of Keras and of users."""

from collections.abc import Callable

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.training.losses import find_from_logits, find_ids


class WrappedLoss(keras.losses.Loss):
    """A loss that is computed by another loss of Keras, `loss`, or its configuration.

    Args:
        loss: `keras.losses.Loss`, or its configuration.
        name: str, the name of `loss` by default.
        activation: "softmax" or "sigmoid", which makes probabilities of the outputs for a loss
            without an argument `from_logits`; or None.
    """

    def __init__(
        self,
        loss: keras.losses.Loss | Config,
        name: str | None = None,
        activation: str | None = None,
    ) -> None:
        if isinstance(loss, dict):
            loss = keras.saving.deserialize_keras_object(loss)
        if not isinstance(loss, keras.losses.Loss):
            raise ValueError(
                f"{type(self).__name__} wraps a loss of the class keras.losses.Loss, got {loss!r}. "
                "Pass an object, such as keras.losses.BinaryFocalCrossentropy(from_logits=True)."
            )
        super().__init__(name=name or loss.name, reduction=loss.reduction)
        self.loss = loss
        self.activation = activation

    @property
    def from_logits(self) -> bool | None:
        """Whether the loss takes logits, or None if the loss does not say."""
        return find_from_logits(self.loss)

    def activate(self, y_pred: Tensor) -> Tensor:
        """The outputs as `loss` takes them."""
        if self.activation is None:
            return y_pred
        return keras.activations.get(self.activation)(y_pred)

    def get_config(self) -> Config:
        loss = keras.saving.serialize_keras_object(self.loss)
        return {"loss": loss, "name": self.name, "activation": self.activation}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class OneHotLoss(WrappedLoss):
    """Makes a loss of one-hot labels take class ids.

    `y_true` int (B,), class ids, or float (B, C), which stay as they are; `y_pred` float (B, C).

    Args:
        loss: `keras.losses.Loss`, such as `CategoricalCrossentropy(label_smoothing=0.1)`, or its
            configuration.
        name: str, the name of `loss` by default.
        activation: "softmax" for a loss of probabilities whose `y_pred` are logits; or None.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        num_classes = ops.shape(y_pred)[-1]
        if len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] == 1:
            y_true = y_true[..., 0]
        if len(y_true.shape) < len(y_pred.shape):
            y_true = ops.one_hot(ops.cast(y_true, "int32"), num_classes, dtype=y_pred.dtype)
        return self.loss.call(y_true, self.activate(y_pred))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ClassIdLoss(WrappedLoss):
    """Makes a loss of class ids and probabilities take the labels and the outputs of a task.

    `y_true` int (B,), class ids, or float (B, C), where the class with the largest value counts;
    `y_pred` float (B, C).

    Args: as for `OneHotLoss`.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return self.loss.call(find_ids(y_true, y_pred), self.activate(y_pred))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ElementwiseLoss(WrappedLoss):
    """Makes a loss that compares each output with a label refuse labels of another shape.

    Keras would compare class ids (B,) with each column of the outputs (B, C), if B is 1 or C.

    `y_true` and `y_pred` float (B, C).

    Args:
        loss: `keras.losses.Loss`, such as `MeanSquaredError`, or its configuration.
        name: str, the name of `loss` by default.
        activation: "softmax" or "sigmoid" for a loss of probabilities whose `y_pred` are logits; or
            None.

    Raises:
        ValueError: if `y_true` has another shape than `y_pred`.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        check_same_shape(self.name, y_true, y_pred)
        return self.loss.call(y_true, self.activate(y_pred))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LabelwiseLoss(WrappedLoss):
    """Makes a loss return a number for each label of a row, so that labels can have weights.

    The losses of Keras return the mean over the labels of a row. This loss has the same mean, but
    `sample_weight` may also weight the labels of a row.

    `y_true` and `y_pred` float (B, C); `sample_weight` float (B,) or (B, C), or None.

    Args:
        loss: `keras.losses.Loss` that treats each label by itself, such as `BinaryCrossentropy` or
            `BinaryFocalCrossentropy`, or its configuration.
        name: str, the name of `loss` by default.
        activation: "sigmoid" for a loss of probabilities whose `y_pred` are logits; or None.
            `compile` of a task sets it.
    """

    #: bool, whether data may weigh single labels.
    is_labelwise = True

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        check_same_shape(self.name, y_true, y_pred)
        return self.loss.call(y_true[..., None], self.activate(y_pred)[..., None])

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        if sample_weight is not None and len(sample_weight.shape) == 1:
            sample_weight = sample_weight[:, None]
        return super().__call__(y_true, y_pred, sample_weight)


def check_same_shape(name: str, y_true: Tensor, y_pred: Tensor) -> None:
    """Raises a ValueError if labels do not have the shape of the outputs, as far as it is known."""
    labels, outputs = tuple(y_true.shape), tuple(y_pred.shape)
    if len(labels) == len(outputs) and all(
        a == b or None in (a, b) for a, b in zip(labels, outputs, strict=True)
    ):
        return
    raise ValueError(
        f"The loss {name} compares each output with a label, so labels must have the shape of the "
        f"outputs {outputs}, got labels of the shape {labels}. For class ids, leave `loss` out or "
        "pass 'sparse_categorical_crossentropy' or 'categorical_hinge'; or pass one-hot labels "
        "(B, C). For numbers, build the task with problem_type='regression'."
    )


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PredictionMean(WrappedLoss):
    """The mean of a loss over the predictions that count, which have weights above 0.

    Keras would divide by the number of all predictions, and padding is among them.

    `y_true` and `sample_weight` (B, L), or `y_true` (B, L, T) for T numbers. `loss` returns the
    loss of each prediction (B, L), or a scalar, which is then the loss of the batch.

    Args:
        loss: `keras.losses.Loss`, or its configuration; or a function(y_true, y_pred).
        name: str, the name of `loss` by default.
    """

    def __init__(
        self, loss: keras.losses.Loss | Callable[..., Tensor] | Config, name: str | None = None
    ) -> None:
        if isinstance(loss, dict):
            loss = keras.saving.deserialize_keras_object(loss)
        name = name or getattr(loss, "name", None) or getattr(loss, "__name__", "loss")
        keras.losses.Loss.__init__(self, name=name, reduction="mean_with_sample_weight")
        self.loss = loss

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        compute = self.loss.call if isinstance(self.loss, keras.losses.Loss) else self.loss
        losses = ops.convert_to_tensor(compute(y_true, y_pred))
        if len(losses.shape) not in (0, min(len(y_true.shape), 2)):
            raise ValueError(
                f"The loss {self.name} must return the loss of each prediction, in the shape "
                f"{tuple(y_true.shape[:2])}, or a scalar, got the shape "
                f"{tuple(losses.shape)}. Leave the mean over the predictions of a row out."
            )
        return losses

    def get_config(self) -> Config:
        return {"loss": keras.saving.serialize_keras_object(self.loss), "name": self.name}
