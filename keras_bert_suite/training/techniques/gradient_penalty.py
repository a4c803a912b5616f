"""Training with small gradients by the embeddings."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.argument_checks import check_positive, with_article
from keras_bert_suite.training.loss_shares import count_rows
from keras_bert_suite.training.techniques.technique import Batch, Technique, advise


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class GradientPenalty(Technique):
    """Adds the squared length of the gradient by the token embeddings to the loss.

    The loss is L + epsilon / 2 times the mean over the rows of |g|^2. g is the gradient of the loss
    of one row by its token embeddings: the gradient of the loss of the batch, times the number of
    its rows. The weights follow the gradient of both, which takes second derivatives. A step takes
    about three times the time of a plain one.

    The term is of each row, so the size of a batch and its replicas do not matter.

    Deviations: bert4keras takes the gradient of the mean over a batch of B rows, so its epsilon is
    B times this one. The gradient penalty of bert4torch adds a number without a gradient and goes
    back twice, so it only doubles the gradient.

    It needs an encoder of this package without `recompute`. The tasks that cannot have it are those
    of `FGM`.

    Args:
        epsilon: float above 0. The default is near bert4keras' 1 in batches of 16 to 32 rows.

    Source: bert4keras, task_iflytek_gradient_penalty.py; Drucker and Le Cun, 1992, "Improving
    generalization performance using double backpropagation".
    """

    moves_embeddings = True

    def __init__(self, epsilon: float = 0.05) -> None:
        check_positive("epsilon", epsilon)
        self.epsilon = epsilon

    def build(self, model: Any) -> None:
        if not model.has_second_derivative:
            raise ValueError(
                f"GradientPenalty takes the second derivative of the loss, and that of "
                f"{with_article(model)} has none. {advise(model)}"
            )

    def loss(self, forward: Any, batch: Batch, rng: Any) -> Any:
        loss, outputs, gradient = forward.differentiate(batch)
        squares = ops.sum(ops.square(gradient))
        return loss + self.epsilon / 2 * count_rows(gradient) * squares, outputs
