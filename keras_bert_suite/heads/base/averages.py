"""The forms in which outputs of several tasks are averaged: how they are reached, and left again.

Here `xp` has the functions for arrays, `numpy` or `keras.ops`.
"""

from keras_bert_suite.heads.base.probabilities import TINY, find_logits

#: The forms, and how an error says them.
PROBABILITIES, LOGITS, NUMBERS, VECTORS = "probabilities", "logits", "numbers", "vectors"

#: The exponential of 80 does not overflow.
_MOST = 80.0


def to_form(answers, outputs, form, xp):
    """Outputs of a task as they are averaged, one of `answers.mean_forms`."""
    if form == VECTORS:
        return scale_to_length(xp, outputs)
    if form == PROBABILITIES and answers.are_logits:
        return answers.to_probabilities(outputs, xp)
    if form == LOGITS and not answers.are_logits:
        return answers.to_logits(outputs, xp)
    return outputs


def from_form(answers, mean, form, xp):
    """The outputs that a task would have whose form is the mean."""
    if form == VECTORS:
        return scale_to_length(xp, mean)
    if form == PROBABILITIES and answers.are_logits:
        return answers.to_logits(mean, xp)
    if form == LOGITS and not answers.are_logits:
        return answers.to_probabilities(mean, xp)
    return mean


def sigmoid(xp, logits):
    """The probability of each logit."""
    return 1 / (1 + xp.exp(-xp.clip(logits, -_MOST, _MOST)))


def find_log_odds(xp, probabilities):
    """Logits whose sigmoid are the probabilities."""
    return find_logits(probabilities, xp) - find_logits(1 - probabilities, xp)


def scale_to_length(xp, vectors):
    """Vectors (..., H) of the length 1; the vector 0 stays as it is."""
    squares = xp.sum(vectors * vectors, axis=-1, keepdims=True)
    return vectors / xp.sqrt(xp.maximum(squares, TINY))
