"""The optimizer that BERT was trained with."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import LearningRate, Tensor
from keras_bert_suite.training.bert_optimizer import BertOptimizer
from keras_bert_suite.training.fused_updates import TensorFlowAdamW, torch_adamw


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AdamW(BertOptimizer):
    """Adam with decoupled weight decay, by default **without bias correction**.

    m = beta_1 m + (1 - beta_1) g;  v = beta_2 v + (1 - beta_2) g^2
    p = p - learning_rate (m / (sqrt(v) + epsilon) + weight_decay p)

    `keras.optimizers.AdamW` corrects the bias of m and v, decays every variable and does not clip.
    So it trains a BERT to other weights.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        weight_decay: float of at least 0.
        beta_1, beta_2: float of at least 0 and below 1.
        epsilon: float of at least 0.
        global_clipnorm: float, the bound of the norm of all gradients together, or None.
        bias_correction: bool. BERT was trained without the correction. Fine-tuning on a few
            thousand examples is better with it. Without it, the updates of the first hundreds of
            steps are three to six times as large (Zhang et al., 2021,
            https://arxiv.org/abs/2006.05987).
        no_decay: regular expressions searched in `variable.path`. A variable is not decayed if an
            expression is found in its path. The default is biases and norms, and with them any
            vector or scalar, such as the thresholds of a head; but not the weights of `ScalarMix`
            and of a `ConditionalRandomField`. None decays every variable.
        no_decay_names: regular expressions searched in `variable.name`, for further variables
            that are not decayed, or None. `exclude_from_weight_decay(var_names=...)` adds to them.
        rate_multipliers: dict of regular expression -> factor, or pairs; None for none. The
            learning rate of a variable is multiplied by the factor of the first expression that is
            found in `variable.path`. So the transitions of a CRF may learn faster than the encoder:
            `{"crf/": 100.0}`. Numbers are found whole: "layer_1" does not find `layer_10`.
            `[v.path for v in task.trainable_variables]` lists the paths, such as
            `transformer_layer_1/self_attention/query/kernel`.
        layer_decay: float over 0 and at most 1, the factor of the learning rate from a layer of the
            encoder to the layer below it, such as 0.8; None for one rate. `compile` of a task
            numbers the layers. A factor of `rate_multipliers` is multiplied by it, and the weights
            outside of the encoder have the whole rate. `task.rates()` shows the rate of each
            weight. Lower layers know more of the language in general, so they should change less.
        layer_numbering: str, "electra" (the default with a `layer_decay`), where the last layer has
            the factor `layer_decay` ** 2, or "beit", where it has `layer_decay`; see
            `training/layer_decay.py`.
        lookahead_steps: int k, or None. After each k-th step, each weight returns to a point
            between where it is and where it was k steps before (Lookahead; Zhang et al., 2019,
            https://arxiv.org/abs/1907.08610). It takes once more the memory of the weights, and
            makes a training less sensitive to a high rate. The paper has 5 to 10.
        lookahead_share: float over 0 and at most 1, the share of the way that is kept. 0.5 by
            default with `lookahead_steps`.
        gradient_accumulation_steps: int or None, how many batches make a step. The step takes the
            mean of their gradients.
        momentum_dtype: dtype of m, as optax's `mu_dtype`: "bfloat16", or None for the dtype of each
            variable. A float32 weight, its gradient, m and v take 16 bytes; a bfloat16 m saves 2
            bytes. v keeps its dtype: a step lowers v by at most 1 in 1000, and bfloat16 would round
            this change away.
        **kwargs: other arguments of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: when the optimizer is built, if an expression given in `no_decay`,
            `no_decay_names` or `rate_multipliers` is found in no variable. At once, if
            a factor of `rate_multipliers` is below 0 or no number, if `layer_decay`,
            `lookahead_steps` or `lookahead_share` is out of its range, or if a `layer_numbering` or
            a `lookahead_share` has nothing that it is for.

    Source: google-research/bert, optimization.py.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 5e-5,
        weight_decay: float = 0.01,
        name: str = "adamw",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay, name=name, **kwargs)
        self._tensorflow_step: TensorFlowAdamW | None = None

    def update_variable(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor
    ) -> None:
        multiplier = self.rate_multiplier_of(variable)
        # TensorFlow's kernel computes in the dtype of the variable, and in bfloat16 its 1 - 0.999
        # is 0. It takes only moments of the same dtype.
        wide = variable.dtype in ("float32", "float64") and self.momentum_dtype is None
        if keras.config.backend() == "tensorflow" and wide:
            index = self._get_variable_index(variable)
            m, v = self._momentums[index].value, self._velocities[index].value
            if self._tensorflow_step is None:
                self._tensorflow_step = TensorFlowAdamW(learning_rate, self)
            decay = self.decay_of(variable)
            self._tensorflow_step.update(variable, gradient, m, v, decay, multiplier)
            return
        update = self.adam_update(gradient, variable)
        update = ops.cast(learning_rate * multiplier, update.dtype) * update
        self.assign_sub(variable, ops.cast(update, variable.dtype))

    def update_all(
        self, gradients: list[Tensor], variables: Sequence[keras.Variable], learning_rate: Tensor
    ) -> None:
        if keras.config.backend() != "torch":
            try:
                super().update_all(gradients, variables, learning_rate)
            finally:
                self._tensorflow_step = None  # Its tensors are of the graph that is being traced.
            return
        indices = [self._get_variable_index(variable) for variable in variables]
        by_settings: dict[tuple[float, float], list[tuple[Tensor, Tensor, int]]] = {}
        for gradient, variable, index in zip(gradients, variables, indices, strict=True):
            decay = 0.0 if self._found_by_no_decay[index] else self.decay
            rows = by_settings.setdefault((decay, self._multipliers[index]), [])
            rows.append((gradient, variable._value, index))
        self.begin_lookahead(variables)
        for (decay, multiplier), rows in by_settings.items():
            torch_adamw(
                [value.detach() for _, value, _ in rows],
                [gradient.to(value.dtype).contiguous() for gradient, value, _ in rows],
                [self._momentums[index]._value for *_, index in rows],
                [self._velocities[index]._value for *_, index in rows],
                learning_rate * multiplier,
                decay,
                self.finite,
                self,
            )
        self.end_lookahead(variables)
