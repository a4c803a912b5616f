"""The losses of several exits, for each row."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.training import Divergence, OutputForm
from keras_bert_suite.training.wrapped_losses import WrappedLoss


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ExitLoss(WrappedLoss):
    """The weighted sum of a loss over the exits.

    `y_true` as for `loss`; `y_pred` float (B, E, C), the outputs of all exits.

    Args:
        loss: `keras.losses.Loss` of the outputs (B, C) of one exit, or its configuration.
        weights: list of E floats. An exit of the weight 0 is not trained.
        name: str, the name of `loss` by default.

    Sources: PABEE (https://arxiv.org/abs/2006.04152), equation 5, with weights j / sum(j) of the
    layers j; DeeBERT (https://arxiv.org/abs/2004.12993), section 2.2, with 1 for each but the last.
    """

    def __init__(
        self,
        loss: keras.losses.Loss | Config,
        weights: Sequence[float],
        name: str | None = None,
        activation: str | None = None,
    ) -> None:
        super().__init__(loss, name, activation)
        self.weights = list(weights)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the loss of each row."""
        losses = [
            weight * self.loss.call(y_true, y_pred[:, place])
            for place, weight in enumerate(self.weights)
            if weight
        ]
        return sum(losses[1:], losses[0])

    def get_config(self) -> Config:
        return {**super().get_config(), "weights": self.weights}


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ExitDistillation(keras.losses.Loss):
    """The sum over the exits of KL(p || q), p the classes of the last exit, q those of an exit.

    The last exit gets no gradient. `y_true` is not read; `y_pred` float (B, E, C), logits.

    Source: Liu et al., 2020, FastBERT (https://arxiv.org/abs/2004.02178), section 3.2. As in its
    code, the divergence is from the teacher to the student. Its equation 6 has the other order.
    """

    def __init__(
        self,
        name: str = "exit_distillation",
        reduction: str = "sum_over_batch_size",
        dtype: str | None = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """float32 (B,), the divergence of each row."""
        teacher = ops.stop_gradient(y_pred[:, -1:])
        compare = Divergence.of_form(OutputForm("classes")).one_way
        return ops.sum(compare(y_true, teacher, y_pred[:, :-1]), axis=-1)
