"""The optimizer BERT was trained with."""

import re

import keras
from keras import ops

from keras_bert_suite.training.fused_updates import (
    CLIP_BY_GLOBAL_NORM,
    sum_slices,
    tensorflow_adamw,
    torch_adamw,
)

#: Searched in `variable.path`. Matching `variable.name`, as Keras' own optimizers
#: do, would find no layer norm: its variables are called `gamma` and `beta`.
NO_DECAY = (r"(^|/)bias$", r"(^|/)(gamma|beta)$")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AdamW(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay, by default **without bias correction**.

    m = beta_1 m + (1 - beta_1) g;  v = beta_2 v + (1 - beta_2) g^2
    p = p - learning_rate (m / (sqrt(v) + epsilon) + weight_decay p)

    `keras.optimizers.AdamW` corrects the bias of m and v, decays every variable and
    does not clip; a BERT fine-tuned with it follows another path.

    Args:
        learning_rate: float or `keras.optimizers.schedules.LearningRateSchedule`.
        weight_decay: float.
        beta_1, beta_2, epsilon: float.
        global_clipnorm: float, bound of the norm of all gradients together, or None.
        bias_correction: bool. BERT was trained without. With a few thousand examples it
            is better on: without, the first hundreds of steps are three to six times as
            long (Zhang et al., 2021, https://arxiv.org/abs/2006.05987).
        no_decay: regular expressions searched in `variable.path`; a variable that
            one of them finds is not decayed. Defaults to biases and norms.
        gradient_accumulation_steps: int or None, batches whose mean gradient makes a step.
        **kwargs: other arguments of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: when the optimizer is built, if an expression given in `no_decay`
            finds none of the variables.

    Source: google-research/bert, optimization.py.
    """

    def __init__(
        self,
        learning_rate=5e-5,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        global_clipnorm=1.0,
        bias_correction=False,
        no_decay=NO_DECAY,
        gradient_accumulation_steps=None,
        name="adamw",
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            global_clipnorm=global_clipnorm,
            gradient_accumulation_steps=gradient_accumulation_steps,
            name=name,
            **kwargs,
        )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.no_decay = tuple(no_decay)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        paths = {self._var_key(v): v.path for v in variables}
        if self.no_decay != NO_DECAY:
            for pattern in self.no_decay:
                if not any(re.search(pattern, path) for path in paths.values()):
                    raise ValueError(
                        f"no_decay={pattern!r} finds none of the {len(paths)} variables. It is "
                        f"searched in paths such as {next(iter(paths.values()))!r}."
                    )
        self._decay_of = {
            key: 0.0 if any(re.search(p, path) for p in self.no_decay) else self.weight_decay or 0.0
            for key, path in paths.items()
        }

    def _apply_weight_decay(self, variables):
        """Nothing: the decay is part of the update."""

    def step(self):
        """The number of the coming update, from 1, float32 scalar."""
        return ops.cast(self.iterations + 1, "float32") / (self.gradient_accumulation_steps or 1)

    def _clip_gradients(self, gradients):
        backend = keras.config.backend()
        if backend == "tensorflow":
            gradients = sum_slices(gradients)
        if self.global_clipnorm and backend in CLIP_BY_GLOBAL_NORM:
            return CLIP_BY_GLOBAL_NORM[backend](gradients, self.global_clipnorm)
        return super()._clip_gradients(gradients)

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        decay = self._decay_of[self._var_key(variable)]
        if keras.config.backend() == "tensorflow":
            tensorflow_adamw(variable, gradient, m.value, v.value, learning_rate, decay, self)
            return
        learning_rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        momentum, velocity = m.value, v.value
        if self.bias_correction:
            momentum = momentum / (1.0 - ops.power(self.beta_1, self.step()))
            velocity = velocity / (1.0 - ops.power(self.beta_2, self.step()))
        update = momentum / (ops.sqrt(velocity) + self.epsilon) + decay * variable
        self.assign_sub(variable, learning_rate * update)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if keras.config.backend() != "torch":
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        by_decay = {}
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            decay = self._decay_of[self._var_key(variable)]
            by_decay.setdefault(decay, []).append((gradient, variable))
        for decay, pairs in by_decay.items():
            indices = [self._get_variable_index(variable) for _, variable in pairs]
            torch_adamw(
                [variable.value.detach() for _, variable in pairs],
                [gradient.to(variable.value.dtype).contiguous() for gradient, variable in pairs],
                [self._momentums[i].value for i in indices],
                [self._velocities[i].value for i in indices],
                learning_rate,
                decay,
                self,
            )

    def get_config(self):
        config = super().get_config()
        return {
            **config,
            "weight_decay": self.weight_decay,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "no_decay": list(self.no_decay),
        }
