"""The macro F1 as a metric of training."""

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.training.losses import find_ids, is_one_hot
from keras_bert_suite.training.output_forms import mark_classes


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MacroF1(keras.metrics.F1Score):
    """The mean of the F1 of the classes, or of the labels of sets, as `score` of a task counts it.

    In `compile` of a task it takes the labels of the task as they are: class ids, one-hot or soft
    labels, sets of labels, tags of tokens. It counts over all rows of an epoch, on any number of
    replicas. A class that no row has, and that no answer names, has the F1 0. scikit-learn leaves
    it out, unless `f1_score(..., average="macro", labels=range(C))` names it.

    `y_true` int (B,), class ids; or (B, C), one-hot rows or sets of 0 and 1. `y_pred` float (B, C),
    probabilities; without a threshold also logits. `sample_weight` float (B,), or None.

    Args:
        threshold: float in (0, 1]. A row has the labels whose probability is above it. None is the
            class with the highest score, and 0.5 in a task whose labels are sets.
        name, dtype: as in Keras.

    Example:
    ```python
    classifier.compile(metrics=["accuracy", kbs.MacroF1()])
    best = keras.callbacks.EarlyStopping("val_macro_f1", mode="max", restore_best_weights=True)
    classifier.fit(texts, labels, validation_data=(dev_texts, dev_labels), callbacks=[best])
    ```
    """

    def __init__(
        self, threshold: float | None = None, name: str = "macro_f1", dtype: Dtype | None = None
    ) -> None:
        super().__init__("macro", threshold, name, dtype)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if not is_one_hot(y_true, y_pred) and y_pred.shape[-1] != 1:
            y_true = mark_classes(find_ids(y_true, y_pred), y_pred)
        if self.threshold is None:  # Of equal scores the first is the answer, as in `score`.
            y_pred = mark_classes(ops.argmax(y_pred, axis=-1), y_pred)
        super().update_state(y_true, y_pred, sample_weight)

    def get_config(self) -> Config:
        return {"name": self.name, "dtype": self.dtype, "threshold": self.threshold}
