"""Losses of pretraining, of classes and of spans."""

from collections.abc import Sequence
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

    If replicas share a batch, sum(w) is over the whole batch, and the sum of the losses of all
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
class MaskedFrameLoss(TokenMeanLoss):
    """The mean error of the frames that count; see `TokenMeanLoss`.

    `y_true` float (B, P, D), the frames; `y_pred` float (B, P, D); `sample_weight` float (B, P), 0
    in slots that hold no prediction, or None. The error of a frame is the mean over its D numbers.

    Args:
        power: int, 1 for absolute errors, 2 for their squares.
        **kwargs: other arguments of `TokenMeanLoss`.
    """

    default_name = "masked_frame_loss"

    def __init__(self, power: int = 1, **kwargs: Any) -> None:
        if power not in (1, 2):
            raise ValueError(f"power must be 1 or 2, got {power!r}.")
        super().__init__(**kwargs)
        self.power = power

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B, P), the error of each frame."""
        errors = ops.abs(ops.cast(y_true, "float32") - ops.cast(y_pred, "float32"))
        return ops.mean(errors if self.power == 1 else ops.square(errors), axis=-1)

    def measure(self, y_true: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        return super().measure(y_true[..., 0], sample_weight)

    def get_config(self) -> Config:
        return {**super().get_config(), "power": self.power}


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


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ClassCrossentropy(keras.losses.SparseCategoricalCrossentropy):
    """The cross-entropy of classes. It takes class ids, as its base class does, and soft labels.

    `y_true` int (B,), class ids, or float (B, C), one-hot or soft labels; `y_pred` float (B, C).
    Its arguments are the same as for `keras.losses.SparseCategoricalCrossentropy`.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if not is_one_hot(y_true, y_pred):
            return super().call(y_true, y_pred)
        config = self.get_config()  # In Keras 3.16 its values are no attributes.
        smoothing = config.get("label_smoothing", 0.0)  # Keras 3.15 has none.
        from_logits = config["from_logits"]
        return keras.losses.categorical_crossentropy(y_true, y_pred, from_logits, smoothing)


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


def find_from_logits(loss: Any) -> bool | None:
    """Whether a loss takes logits, or None if neither an attribute nor its configuration says."""
    from_logits = getattr(loss, "from_logits", None)
    if from_logits is None and isinstance(loss, keras.losses.Loss):
        from_logits = loss.get_config().get("from_logits")
    return from_logits


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
    # Under PyTorch, Keras first calls a loss with made-up labels, which may be out of range.
    size = batch * num_types * length * length
    index = ops.clip(ops.where(known, index, 0), 0, size - 1)
    marks = ops.scatter(
        ops.reshape(index, (-1, 1)), ops.reshape(ops.cast(known, "float32"), (-1,)), (size,)
    )
    return ops.reshape(marks > 0, (batch, num_types, length, length))
