"""Metrics of pretraining."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLMAccuracy(keras.metrics.MeanMetricWrapper):
    """How many masked tokens are guessed: weighted mean over the predictions that count.

    A guess is right if no token scores higher than the one that was there. (Looking for the
    one that scores highest, as `SparseCategoricalAccuracy` does, takes several times as long
    on a CPU.)

    `y_true` int (B, P); `y_pred` float (B, P, V), logits or probabilities; `sample_weight`
    float (B, P).
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(fn=is_top_scorer, name=name, dtype=dtype)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


def is_top_scorer(labels, scores):
    """float32 (...), 1 where `labels` (...) has the highest of the `scores` (..., V)."""
    labels = ops.cast(labels, "int32")
    chosen = ops.take_along_axis(scores, labels[..., None], axis=-1)[..., 0]
    return ops.cast(chosen >= ops.max(scores, axis=-1), "float32")
