"""Measures how much texts surprise a model that reads them from left to right."""

import numpy as np
from keras import ops


def measure_losses(task, texts, batch_size):
    """The losses of texts, in nats, and the numbers of the tokens that are predicted.

    Returns:
        tuple (float64 (N,), the sum over the tokens of each text; int64 (N,)).
    """
    rows = task.data.read(texts)
    if rows.is_packed:
        raise ValueError("The perplexity is that of texts, got packed arrays. Call `evaluate`.")
    losses, counts = np.zeros(len(rows)), np.zeros(len(rows), "int64")
    order = np.argsort(-task.data.lengths(rows), kind="stable")
    for start in range(0, len(rows), batch_size):
        numbers = order[start : start + batch_size]
        inputs, labels, weights = task.data.pack(rows.take(numbers), labelled=True)
        logits = ops.cast(task.predict_on_batch(inputs), "float32")
        found = ops.take_along_axis(ops.log_softmax(logits), labels[:, :, None], axis=-1)
        found = ops.convert_to_numpy(found)[:, :, 0].astype("float64")
        losses[numbers] = -np.sum(found * weights, axis=1)
        counts[numbers] = weights.sum(axis=1)
    return losses, counts
