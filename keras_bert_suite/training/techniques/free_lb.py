"""Adversarial training that learns at each step of the walk."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.argument_checks import check_integer, check_positive
from keras_bert_suite.training.techniques.row_lengths import limit_rows, mark_tokens, scale_rows
from keras_bert_suite.training.techniques.technique import Batch, Gradients, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FreeLB(Technique):
    """The mean gradient of K places of a walk of the embeddings, which begins at random.

    r begins as uniform(-1, 1) first_norm / sqrt(n) for a row of n numbers, those of its tokens.
    Then `steps` times: the gradient by the weights at r is added to the mean; r += rate g / |g|
    with the gradient g by the embeddings of one row, and r is cut to the length `max_norm`. A step
    takes `steps` forward and backward passes, and all of them drop the same elements.

    Norms are of each row, as those of `FGM`, and the same tasks take it. Replicas that share a
    batch begin with the same random numbers, each for its rows.

    Args:
        steps: int, K.
        rate: float above 0, the length of one move.
        first_norm: float, 0 or more, of the start. The length of r is first_norm / sqrt(3) then.
        max_norm: float above 0, the largest length of r.

    The defaults are the authors' for MRPC and RoBERTa-large. Theirs for other data, as (rate,
    steps, first_norm, max_norm): SST-2 (0.1, 2, 1, 0.6), CoLA (0.025, 3, 0.4, 0.3), STS-B (0.1, 3,
    0.16, 0.28).

    Source: Zhu et al., 2020 (https://arxiv.org/abs/1909.11764), algorithm 1, and the authors' code,
    whose moves are of the embeddings of words, before positions and norms.
    """

    moves_embeddings = True

    def __init__(
        self, steps: int = 3, rate: float = 0.04, first_norm: float = 0.64, max_norm: float = 0.4
    ) -> None:
        check_integer("steps", steps, at_least=1)
        check_positive("rate", rate)
        check_positive("max_norm", max_norm)
        if first_norm != 0:
            check_positive("first_norm", first_norm)
        self.steps, self.rate, self.first_norm, self.max_norm = steps, rate, first_norm, max_norm

    def gradients(
        self, differentiate: Callable[..., Gradients], batch: Batch, rng: Any
    ) -> Gradients:
        is_token = mark_tokens(batch)
        shape = ops.shape(batch.shift)
        axes = tuple(range(1, len(shape)))
        size = ops.maximum(ops.sum(is_token, axis=axes, keepdims=True) * shape[-1], 1.0)
        start = keras.random.uniform(shape, -1.0, 1.0, seed=rng)
        shift = start * is_token * self.first_norm / ops.sqrt(size)
        total = found = differentiate(shift)
        for _ in range(self.steps - 1):
            shift = limit_rows(shift + scale_rows(found.shift, self.rate), self.max_norm)
            found = differentiate(shift, same_dropout=True)
            total = total + found
        return 1 / self.steps * total
