"""Metrics of pretraining and of sets of labels."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.replicas import count_replicas, sum_over_replicas
from keras_bert_suite.training.loss_shares import measure_loss, share_loss
from keras_bert_suite.training.losses import is_one_hot, split_attributes


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenAccuracy(keras.metrics.MeanMetricWrapper):
    """The share of tokens whose label has the highest score, over the tokens that count.

    Every token has the same weight. `SparseCategoricalAccuracy` first takes the mean of each row,
    padding included, so a token of a long batch counts less than a token of a short batch.

    If several labels have the highest score, the first is the answer, as in
    `SparseCategoricalAccuracy`.

    `y_true` int (B, L); `y_pred` float (B, L, C), logits or probabilities; `sample_weight`
    float (B, L), the weights of the mean.
    """

    _direction = "up"  # By which callbacks know that more is better.

    def __init__(self, name: str = "accuracy", dtype: Dtype | None = None) -> None:
        super().__init__(fn=is_top_scorer, name=name, dtype=dtype)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        y_pred = ops.convert_to_tensor(y_pred)
        super().update_state(
            ops.reshape(y_true, (-1,)),
            ops.reshape(y_pred, (-1, y_pred.shape[-1])),
            None if sample_weight is None else ops.reshape(sample_weight, (-1,)),
        )

    def get_config(self) -> Config:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ClassAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """The share of rows whose class has the highest score. It also takes soft labels.

    `y_true` int (B,), class ids, or float (B, C), one-hot or soft labels, where the class with the
    largest value counts; `y_pred` float (B, C), logits or probabilities; `sample_weight` float
    (B,), the weights of the mean.
    """

    def __init__(self, name: str = "accuracy", dtype: Dtype | None = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if is_one_hot(y_true, y_pred):
            y_true = ops.argmax(y_true, axis=-1)
        super().update_state(y_true, y_pred, sample_weight)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AttributeAccuracy(keras.metrics.Mean):
    """The share of labels that have the highest score of their attribute, over all attributes.

    `y_true`, `y_pred`: as for `AttributeLoss`. Missing labels do not count. `sample_weight` float
    (B,), the weights of the rows.

    Args:
        sizes: list of ints, the classes of each attribute.
    """

    _direction = "up"  # By which callbacks know that more is better.

    def __init__(
        self, sizes: Sequence[int], name: str = "accuracy", dtype: Dtype | None = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.sizes = list(sizes)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        y_true = ops.cast(y_true, "int32")
        parts = split_attributes(ops.convert_to_tensor(y_pred), self.sizes)
        best = ops.stack([ops.cast(ops.argmax(part, axis=-1), "int32") for part in parts], axis=1)
        weights = ops.cast(y_true >= 0, self.dtype)
        if sample_weight is not None:
            weights *= ops.reshape(ops.cast(sample_weight, self.dtype), (-1, 1))
        super().update_state(ops.cast(best == y_true, self.dtype), weights)

    def get_config(self) -> Config:
        return {**super().get_config(), "sizes": self.sizes}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLMAccuracy(TokenAccuracy):
    """The share of masked tokens that are guessed correctly, over the predictions that count.

    A model whose scores are all the same guesses token 0.

    `y_true` int (B, P); `y_pred` float (B, P, V), logits or probabilities; `sample_weight`
    float (B, P), the weights of the mean.
    """


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReplacedTokenAccuracy(keras.metrics.MeanMetricWrapper):
    """The share of tokens that a discriminator classifies correctly, over the tokens that count.

    `y_true` (B, L), 1 for a token that was replaced; `y_pred` float (B, L), logits;
    `sample_weight` float (B, L), 0 for padding.
    """

    _direction = "up"  # By which callbacks know that more is better.

    def __init__(self, name: str = "accuracy", dtype: Dtype | None = None) -> None:
        super().__init__(fn=is_judged_right, name=name, dtype=dtype)

    def get_config(self) -> Config:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReplacedTokenRecall(ReplacedTokenAccuracy):
    """The share of replaced tokens that a discriminator finds, over the tokens that count.

    `y_true`, `y_pred` and `sample_weight` as for `ReplacedTokenAccuracy`.
    """

    def __init__(self, name: str = "recall", dtype: Dtype | None = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        weights = ops.cast(y_true, "float32")
        if sample_weight is not None:
            weights = weights * ops.cast(sample_weight, "float32")
        super().update_state(y_true, y_pred, weights)


def is_judged_right(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """float32 (B, L), 1 where the logit is positive for 1, and not positive for 0."""
    return ops.cast(ops.equal(y_pred > 0, ops.cast(y_true, "float32") > 0.5), "float32")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LabelSetF1(keras.metrics.F1Score):
    """The F1 of sets of labels. A row has the labels whose probability is above a threshold.

    `y_true` (B, C) of 0 and 1; `y_pred` float (B, C), logits or probabilities; `sample_weight`
    float (B,), weights of rows.

    Args:
        average: "micro" counts all labels of all rows, "macro" is the mean over the labels.
        from_logits: bool, whether `y_pred` are logits, and not probabilities.
        threshold: float in (0, 1].
        name: str.
        dtype: as in Keras.
    """

    def __init__(
        self,
        average: str,
        from_logits: bool = True,
        threshold: float = 0.5,
        name: str | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(average, threshold, name or "_".join((average, "f1")), dtype)
        self.from_logits = from_logits

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        if self.from_logits:
            y_pred = ops.sigmoid(ops.cast(y_pred, self.dtype))
        super().update_state(y_true, y_pred, sample_weight)

    def get_config(self) -> Config:
        return {**super().get_config(), "from_logits": self.from_logits}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FiniteMean(keras.metrics.Mean):
    """The weighted mean of the finite values, or NaN if no value is finite.

    Our optimizers skip a step whose loss is not finite. With the plain mean, a single such batch
    would make the loss of the whole epoch NaN.

    If replicas share a batch, `values` is the share of this replica in the loss of the batch. All
    replicas count the loss of the batch, each with the number of its rows, or with the weight from
    `weigh_next`.
    """

    def __init__(self, name: str = "mean", dtype: Dtype | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._next = threading.local()  # TensorFlow traces each replica in another thread.

    def weigh_next(self, weight: Tensor) -> None:
        """Sets the weight of the next value. Keras itself weighs a batch by the rows of `x`."""
        self._next.weight = weight

    def update_state(self, values: Tensor, sample_weight: Tensor | None = None) -> None:
        sample_weight = vars(self._next).pop("weight", sample_weight)
        values = sum_over_replicas(ops.convert_to_tensor(values, self.dtype))
        if keras.config.backend() == "tensorflow" and count_replicas() > 1:
            values = values / count_replicas()  # Keras has multiplied the share by it.
        finite = ops.isfinite(values)
        weights = 1.0 if sample_weight is None else ops.cast(sample_weight, self.dtype)
        # A weight may be the reason for a NaN. If no row counts at all, the loss is 0.
        weights = ops.where(finite, weights + 1e-7, 0.0)
        super().update_state(ops.where(finite, values, 0.0), weights)

    def result(self) -> Tensor:
        return ops.where(self.count > 0, super().result(), float("nan"))


def forget_metrics(model: keras.Model) -> None:
    """Drops the metrics of an earlier `compile`. Keras keeps them if a new `compile` has none."""
    model._compile_metrics = None


def track_finite_losses(model: keras.Model) -> None:
    """Makes each logged loss of a model the mean over the batches with a finite loss.

    A batch counts as `measure_loss` says. So the mean does not depend on the size of the batches.
    Each loss becomes the share of a replica in the loss of a batch, see `share_loss`.

    Args:
        model: `keras.Model`, just compiled.
    """
    # `setattr` would make Keras list the metric among the user's metrics.
    tracker = vars(model)["_loss_tracker"] = FiniteMean(name="loss")
    losses = model._compile_loss
    build = losses.build

    def build_with_finite_means(y_true: Tensor, y_pred: Tensor) -> None:
        build(y_true, y_pred)
        # A model of several outputs has a metric for each output.
        losses.metrics[:] = [FiniteMean(name=metric.name) for metric in losses.metrics]
        losses._flat_losses = [
            entry._replace(loss=_track(entry.loss, metric))
            for entry, metric in zip(losses._flat_losses, losses.metrics or [tracker], strict=True)
        ]

    losses.build = build_with_finite_means


def _track(loss: Any, metric: FiniteMean) -> Callable[..., Tensor]:
    """The share of a replica in a loss. It tells the metric the weight of the next value."""
    share = share_loss(loss)

    def compute(y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        metric.weigh_next(measure_loss(loss, y_true, sample_weight))
        return share(y_true, y_pred, sample_weight)

    return compute


def is_top_scorer(labels: Tensor, scores: Tensor) -> Tensor:
    """Whether each label, int (...), is the class with the highest score, (..., V): 0 or 1.

    The first of several such classes counts. It is 0 where a score is not a number.
    """
    labels = ops.cast(labels, "int32")[..., None]
    chosen = ops.take_along_axis(scores, labels, axis=-1)
    if keras.config.backend() == "torch":
        best = ops.argmax(scores, axis=-1, keepdims=True)
        # PyTorch's argmax treats NaN as the highest score.
        is_number = ops.logical_not(ops.isnan(chosen))
        right = ops.logical_and(ops.cast(best, "int32") == labels, is_number)
        return ops.cast(right, "float32")[..., 0]
    # XLA compiles these comparisons to one pass. Its argmax takes ten times as long on a CPU.
    before = ops.arange(scores.shape[-1], dtype="int32") < labels
    is_lower = ops.where(before, scores < chosen, scores <= chosen)
    return ops.cast(ops.all(is_lower, axis=-1), "float32")
