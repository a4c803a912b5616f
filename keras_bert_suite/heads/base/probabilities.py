"""Probabilities of logits in NumPy, which needs no compilation for each shape as JAX does."""

import numpy as np


def softmax(logits):
    """float32 (..., C), the probabilities of logits (..., C)."""
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


def find_logits(probabilities):
    """Logits whose softmax are the probabilities."""
    return np.log(np.maximum(probabilities, np.finfo("float32").tiny))
