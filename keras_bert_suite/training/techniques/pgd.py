"""Adversarial training with embeddings that are moved several times, each time a short way."""

from collections.abc import Callable
from typing import Any

import keras

from keras_bert_suite.argument_checks import check_integer, check_positive
from keras_bert_suite.training.techniques.row_lengths import limit_rows, scale_rows
from keras_bert_suite.training.techniques.technique import Batch, Gradients, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PGD(Technique):
    """Adds the loss of embeddings that walk to where the loss is large, within a ball.

    r = 0; `steps` times: r += rate g / |g|, where g is the gradient of the loss at r by the token
    embeddings of one row, and r is cut to the length `max_norm`. The loss is L(embeddings) +
    L(embeddings + r) with the last r. A step takes `steps` + 1 forward and backward passes.

    Norms are of each row, as those of `FGM`, and the same tasks take it.

    Deviations: bert4keras and bert4torch move the rows of the embedding matrix, by norms of the
    whole matrix, so their `alpha` and `epsilon` do not fit here; see `FGM`.

    Args:
        steps: int, K.
        rate: float above 0, the length of one move, alpha in bert4torch.
        max_norm: float above 0, the largest length of r, epsilon in bert4torch.

    Source: Madry et al., 2018 (https://arxiv.org/abs/1706.06083), section 2.1, with steps of equal
    length as in bert4torch.
    """

    moves_embeddings = True

    def __init__(self, steps: int = 3, rate: float = 0.1, max_norm: float = 0.3) -> None:
        check_integer("steps", steps, at_least=1)
        check_positive("rate", rate)
        check_positive("max_norm", max_norm)
        self.steps, self.rate, self.max_norm = steps, rate, max_norm

    def gradients(
        self, differentiate: Callable[..., Gradients], batch: Batch, rng: Any
    ) -> Gradients:
        clean = found = differentiate()
        shift: Any = 0.0
        for step in range(1, self.steps + 1):
            shift = limit_rows(shift + scale_rows(found.shift, self.rate), self.max_norm)
            found = differentiate(shift, weights=step == self.steps)
        return clean + found
