"""Losses of pretraining and of spans, and losses that wrap losses of Keras."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.replicas import sum_over_replicas
from keras_bert_suite.training.cross_entropy import sparse_cross_entropy

#: A score that adds nothing to a sum of exponentials.
_NOTHING = -1e12


class TokenMeanLoss(keras.losses.Loss):
    """The mean of the losses of the tokens that count.

    The loss is sum(w l) / (sum(w) + 1e-5), in float32 under every policy. The term 1e-5 makes the
    loss of a batch without such tokens 0. A subclass computes the losses l of the tokens in `call`.

    If replicas share a batch, sum(w) is that of the whole batch, and the sum of the losses of all
    replicas is the loss of the batch.

    `reduction` is "sum_over_batch_size", Keras' name of the mean. Another value is a ValueError.
    """

    #: The loss is the share of a replica in the loss of the batch, see `share_loss`.
    is_shared = True

    default_name: str

    def __init__(
        self,
        name: str | None = None,
        reduction: str = "sum_over_batch_size",
        dtype: Dtype | None = None,
    ) -> None:
        if reduction != "sum_over_batch_size":
            raise ValueError(
                f"{type(self).__name__} is always the mean over the predictions that count, got "
                f"reduction={reduction!r}. Leave `reduction` out. For the loss of each prediction, "
                "call the method `call` of the loss."
            )
        super().__init__(name=name or self.default_name, reduction=reduction, dtype=dtype)

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        losses = self.call(y_true, y_pred)
        weights = ops.ones_like(losses)
        if sample_weight is not None:
            weights = ops.cast(sample_weight, losses.dtype)
        return ops.sum(weights * losses) / (sum_over_replicas(ops.sum(weights)) + 1e-5)

    def measure(self, y_true: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """float32 scalar, sum(w); see `measure_loss`."""
        weights = ops.ones_like(y_true) if sample_weight is None else sample_weight
        return ops.sum(ops.cast(weights, "float32"))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLMLoss(TokenMeanLoss):
    """The mean cross-entropy of the predictions that count; see `TokenMeanLoss`.

    `y_true` int (B, P), the tokens; `y_pred` float (B, P, V), logits; `sample_weight` float
    (B, P), 0 in slots that hold no prediction, or None.

    Source: google-research/bert, run_pretraining.py, `get_masked_lm_output`.
    """

    default_name = "masked_lm_loss"

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B, P), the cross-entropy of each prediction."""
        return sparse_cross_entropy(y_true, y_pred)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReplacedTokenLoss(TokenMeanLoss):
    """The mean binary cross-entropy of the tokens that count; see `TokenMeanLoss`.

    `y_true` int (B, L), 1 for a token that was replaced; `y_pred` float (B, L), logits;
    `sample_weight` float or int (B, L), 0 for padding, or None.

    Source: google-research/electra, run_pretraining.py, `_get_discriminator_output`. (Its term
    beside the sum of the weights is 1e-6.)
    """

    default_name = "replaced_token_loss"

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B, L), the cross-entropy of each token."""
        labels, logits = (ops.cast(x, "float32") for x in (y_true, y_pred))
        return ops.binary_crossentropy(labels, logits, from_logits=True)


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
        return getattr(self.loss, "from_logits", None)

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

    #: bool, what data asks before it weighs single labels.
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

    `y_true` and `sample_weight` (B, L). `loss` returns the loss of each prediction (B, L), or a
    scalar, which is then the loss of the batch.

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
        if len(losses.shape) not in (0, len(y_true.shape)):
            raise ValueError(
                f"The loss {self.name} must return the loss of each prediction, in the shape of "
                f"the labels {tuple(y_true.shape)}, or a scalar, got the shape "
                f"{tuple(losses.shape)}. Leave the mean over the predictions of a row out."
            )
        return losses

    def get_config(self) -> Config:
        return {"loss": keras.saving.serialize_keras_object(self.loss), "name": self.name}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ClassCrossentropy(keras.losses.SparseCategoricalCrossentropy):
    """The cross-entropy of classes. It takes class ids, as its base class does, and soft labels.

    `y_true` int (B,), class ids, or float (B, C), one-hot or soft labels; `y_pred` float (B, C).
    Its arguments are the same as for `keras.losses.SparseCategoricalCrossentropy`.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if is_one_hot(y_true, y_pred):
            return ops.categorical_crossentropy(y_true, y_pred, from_logits=self.from_logits)
        return super().call(y_true, y_pred)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AttributeLoss(keras.losses.Loss):
    """The weighted sum of the cross-entropies of several attributes, for each row.

    A missing label adds 0.

    `y_true` int (B, A), the class id of each attribute, negative if it is missing; `y_pred` float
    (B, C), logits for the classes of all attributes, one attribute after the other.

    Args:
        sizes: list of A ints, the classes of each attribute, C together.
        weights: list of A floats.
        name, reduction, dtype: as in Keras.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        weights: Sequence[float],
        name: str = "attribute_loss",
        reduction: str = "sum_over_batch_size",
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.sizes = list(sizes)
        self.weights = list(weights)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        y_true = ops.cast(y_true, "int32")
        total: Any = 0.0
        for i, logits in enumerate(split_attributes(y_pred, self.sizes)):
            ids = y_true[:, i]
            losses = ops.sparse_categorical_crossentropy(
                ops.maximum(ids, 0), logits, from_logits=True
            )
            total += self.weights[i] * ops.where(ids >= 0, losses, 0.0)
        return total

    def get_config(self) -> Config:
        return {**super().get_config(), "sizes": self.sizes, "weights": self.weights}


def split_attributes(logits: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """list of float (B, size), the parts of logits (B, C) that belong to each attribute."""
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [logits[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]


def is_one_hot(y_true: Tensor, y_pred: Tensor) -> bool:
    """Whether labels are one-hot or soft labels (B, C), and not class ids (B,) or (B, 1)."""
    return len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] != 1


def find_ids(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """int32 (...), the class ids of labels; of soft labels the first largest."""
    if is_one_hot(y_true, y_pred):
        return ops.cast(ops.argmax(y_true, axis=-1), "int32")
    if len(y_true.shape) == len(y_pred.shape):
        y_true = y_true[..., 0]
    return ops.cast(y_true, "int32")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SpanLoss(keras.losses.Loss):
    """log(1 + sum_negative exp(s)) + log(1 + sum_positive exp(-s)), the mean over the types.

    The loss is small if the scores of all entities are above 0, and all other scores are below 0.
    It needs no weights for the few entities among the many spans.

    `y_true` int (B, M, 3): the first token, the last token and the type of each entity, -1
    where there is none; `y_pred` float (B, C, L, L), scores by first and last token;
    `sample_weight` float (B,), or None.

    Source: Su et al., 2022 (https://arxiv.org/abs/2208.02955), section 3.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        scores = ops.cast(y_pred, "float32")
        batch, num_types, length, _ = ops.shape(scores)
        is_entity = mark_spans(ops.cast(y_true, "int32"), (batch, num_types, length))
        scores = ops.reshape(scores, (batch, num_types, length * length))
        is_entity = ops.reshape(is_entity, (batch, num_types, length * length))
        negative = ops.logsumexp(ops.where(is_entity, _NOTHING, scores), axis=-1)
        positive = ops.logsumexp(ops.where(is_entity, -scores, _NOTHING), axis=-1)
        return ops.mean(ops.softplus(negative) + ops.softplus(positive), axis=-1)


def mark_spans(spans: Tensor, shape: tuple) -> Tensor:
    """Marks the entities of int32 (B, M, 3), as `y_true` of `SpanLoss`, among all spans.

    `shape` is (B, C, L), and the result bool (B, C, L, L).
    """
    batch, num_types, length = shape
    rows = ops.arange(batch, dtype="int32")[:, None]
    first, last, kind = spans[..., 0], spans[..., 1], spans[..., 2]
    index = ((rows * num_types + kind) * length + first) * length + last
    known = first >= 0
    # Under PyTorch, Keras first calls a loss with labels of its own, which may be out of range.
    size = batch * num_types * length * length
    index = ops.clip(ops.where(known, index, 0), 0, size - 1)
    marks = ops.scatter(
        ops.reshape(index, (-1, 1)), ops.reshape(ops.cast(known, "float32"), (-1,)), (size,)
    )
    return ops.reshape(marks > 0, (batch, num_types, length, length))
