"""Losses of pretraining."""

import keras
from keras import ops

from keras_bert_suite.annotations import Dtype, Tensor
from keras_bert_suite.training.cross_entropy import sparse_cross_entropy


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLMLoss(keras.losses.Loss):
    """The mean cross-entropy of the predictions that count.

    The loss is sum(w CE) / (sum(w) + 1e-5), in float32 under every policy. With the term 1e-5 the
    loss of a batch without predictions is 0.

    `y_true` int (B, P), the tokens; `y_pred` float (B, P, V), logits; `sample_weight` float
    (B, P), 0 in slots that hold no prediction, or None.

    Args:
        name: str.
        reduction: "sum_over_batch_size", Keras' name of the mean. Other values are refused.
        dtype: as in Keras.

    Raises:
        ValueError: if `reduction` has another value.

    Source: google-research/bert, run_pretraining.py, `get_masked_lm_output`.
    """

    def __init__(
        self,
        name: str = "masked_lm_loss",
        reduction: str = "sum_over_batch_size",
        dtype: Dtype | None = None,
    ) -> None:
        if reduction != "sum_over_batch_size":
            raise ValueError(
                "MaskedLMLoss is always the mean over the predictions that count, got "
                f"reduction={reduction!r}. Leave `reduction` out. For the loss of each prediction, "
                "call `keras.losses.sparse_categorical_crossentropy(..., from_logits=True)`."
            )
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return sparse_cross_entropy(y_true, y_pred)

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        losses = self.call(y_true, y_pred)
        weights = ops.ones_like(losses)
        if sample_weight is not None:
            weights = ops.cast(sample_weight, losses.dtype)
        return ops.sum(weights * losses) / (ops.sum(weights) + 1e-5)
