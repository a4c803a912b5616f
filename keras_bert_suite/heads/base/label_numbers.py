"""Checks the targets of a regression."""

import numpy as np

from keras_bert_suite.heads.base.label_tensors import encode_tensor
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


def encode_targets(labels, num_targets):
    """Turns the targets of a regression, N numbers or N rows of T, into float32 (N, T).

    >>> encode_targets([4.5, 0], 1).tolist()
    [[4.5], [0.0]]

    A number that is not finite is an error. A tensor of TensorFlow gives a tensor, in whose graph
    the error is `tf.errors.InvalidArgumentError`.
    """
    if is_tf_tensor(labels):
        shape = (None, num_targets)
        return encode_tensor(lambda x: encode_targets(x, num_targets), labels, "float32", shape)
    labels = np.asarray(labels)
    if labels.dtype.kind not in "biuf":
        for row, label in enumerate(labels.tolist()):
            if not isinstance(label, (int, float, np.number)):
                raise ValueError(
                    f"The targets of a regression must be numbers, got {str(label)[:40]!r} "
                    f"({type(label).__name__}) at row {row}."
                )
        labels = labels.astype("float64")
    if labels.ndim == 1 and (num_targets == 1 or not len(labels)):
        labels = labels.reshape(-1, num_targets)
    if labels.ndim != 2 or labels.shape[1] != num_targets:
        raise ValueError(
            f"The regression has {num_targets} targets, so its labels must have the shape "
            f"(N, {num_targets}), got {labels.shape}."
        )
    wrong = np.argwhere(~np.isfinite(labels))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"The targets of a regression must be finite numbers, got {labels[row, column]} at row "
            f"{row}. Correct the row, or leave it out."
        )
    return labels.astype("float32")
