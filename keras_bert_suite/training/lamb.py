"""The optimizer for large batches."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import LearningRate, Tensor
from keras_bert_suite.training.bert_optimizer import BertOptimizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Lamb(BertOptimizer):
    """Adam with decoupled weight decay, and with steps in proportion to the norms of the weights.

    u = m / (sqrt(v) + epsilon) + weight_decay p, where the bias of m and v is corrected
    p = p - learning_rate |p| / |u| u

    Each variable has a ratio |p| / |u|. The ratio is 1 if one of the norms is 0, and for variables
    that are excluded from decay, as in the authors' code. (`keras.optimizers.Lamb` leaves the decay
    out of u, and scales every variable.)

    Args: as for `AdamW`, but `bias_correction` is True by default. The default learning rate is the
        authors' rate for batches of 512. For other batches, scale it with the square root of the
        batch size.

    Source: You et al., 2020 (https://arxiv.org/abs/1904.00962), algorithm 2 and table 4.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 6.25e-4,
        weight_decay: float = 0.01,
        bias_correction: bool = True,
        name: str = "lamb",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate, weight_decay, bias_correction=bias_correction, name=name, **kwargs
        )

    def update_variable(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor
    ) -> None:
        update = self.adam_update(gradient, variable)
        learning_rate = ops.cast(learning_rate, update.dtype) * self.rate_multiplier_of(variable)
        if not self.is_excluded(variable):
            learning_rate = learning_rate * _trust_ratio(ops.cast(variable, update.dtype), update)
        self.assign_sub(variable, ops.cast(learning_rate * update, variable.dtype))


def _trust_ratio(variable: Tensor, update: Tensor) -> Tensor:
    weight_norm = ops.sqrt(ops.sum(ops.square(variable)))
    update_norm = ops.sqrt(ops.sum(ops.square(update)))
    both = ops.logical_and(weight_norm > 0, update_norm > 0)
    # `where` computes both branches, so neither may divide by 0.
    return ops.where(both, weight_norm / ops.where(both, update_norm, 1.0), 1.0)
