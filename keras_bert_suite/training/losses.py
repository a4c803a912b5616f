"""Losses of pretraining."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLMLoss(keras.losses.Loss):
    """The mean cross-entropy of the predictions that count.

    sum(w CE) / (sum(w) + 1e-5), in float32 under every policy. The guard keeps a batch without
    predictions finite.

    `y_true` int (B, P), the tokens; `y_pred` float (B, P, V), logits; `sample_weight` float
    (B, P), 0 in slots that hold no prediction, or None.

    Source: google-research/bert, run_pretraining.py, `get_masked_lm_output`.
    """

    def __init__(self, name="masked_lm_loss", **kwargs):
        super().__init__(name=name, **kwargs)

    def call(self, y_true, y_pred):
        return sparse_cross_entropy(y_true, y_pred)

    def __call__(self, y_true, y_pred, sample_weight=None):
        losses = self.call(y_true, y_pred)
        weights = ops.ones_like(losses)
        if sample_weight is not None:
            weights = ops.cast(sample_weight, losses.dtype)
        return ops.sum(weights * losses) / (ops.sum(weights) + 1e-5)


def sparse_cross_entropy(labels, logits):
    """Cross-entropy of class ids and logits, computed in float32.

    Args:
        labels: int (...).
        logits: float (..., V).

    Returns:
        float32 (...).
    """
    logits = ops.cast(logits, "float32")
    if keras.config.backend() == "torch":
        import torch

        # Keras would make a one-hot array as large as the logits.
        flat = torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]),
            ops.cast(labels, "int64").reshape(-1),
            reduction="none",
        )
        return flat.reshape(tuple(logits.shape[:-1]))
    return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
