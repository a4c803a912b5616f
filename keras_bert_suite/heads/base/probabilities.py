"""Probabilities of logits.

`xp` has the functions for arrays, `numpy` or `keras.ops`. NumPy needs no compilation for each
shape, as JAX does.
"""

import numpy as np

#: The least probability whose logarithm is taken.
TINY = float(np.finfo("float32").tiny)


def softmax(logits, xp=np):
    """float (..., C), the probabilities of logits (..., C)."""
    powers = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def find_logits(probabilities, xp=np):
    """Logits whose softmax are the probabilities."""
    return xp.log(xp.maximum(probabilities, TINY))
