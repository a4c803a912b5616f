"""What the optimizers of BERT have in common."""

import re

import keras
from keras import ops

from keras_bert_suite.training.fused_updates import CLIP_BY_GLOBAL_NORM, sum_slices

#: Searched in `variable.path`. Matching `variable.name`, as Keras' own optimizers
#: do, would find no layer norm: its variables are called `gamma` and `beta`.
NO_DECAY = (r"(^|/)bias$", r"(^|/)(gamma|beta)$")


class BertOptimizer(keras.optimizers.Optimizer):
    """The moments of Adam, clipping by the global norm, and no decay for biases and norms.

    A step whose gradients have a norm that is not finite is skipped: weights, moments and
    `iterations` stay as they are. Of accumulated gradients the whole group is dropped.

    Args: see `AdamW`.
    """

    #: During a step: bool scalar tensor, whether the gradients are finite.
    finite = None

    def __init__(
        self,
        learning_rate,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        global_clipnorm=1.0,
        bias_correction=False,
        no_decay=NO_DECAY,
        gradient_accumulation_steps=None,
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            global_clipnorm=global_clipnorm,
            gradient_accumulation_steps=gradient_accumulation_steps,
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
        self._found_by_no_decay = {
            key for key, path in paths.items() if any(re.search(p, path) for p in self.no_decay)
        }

    def decay_of(self, variable):
        """float, the weight decay of a variable."""
        excluded = self._var_key(variable) in self._found_by_no_decay
        return 0.0 if excluded else self.weight_decay or 0.0

    def step(self):
        """The number of the coming update, from 1, float32 scalar."""
        return ops.cast(self.iterations + 1, "float32")

    def adam_update(self, gradient, variable):
        """Updates the moments; returns m / (sqrt(v) + epsilon) + weight_decay p."""
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        gradient = ops.cast(gradient, variable.dtype)
        momentum = self.beta_1 * m + (1 - self.beta_1) * gradient
        velocity = self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient)
        self.assign(m, ops.where(self.finite, momentum, m.value))
        self.assign(v, ops.where(self.finite, velocity, v.value))
        momentum, velocity = m.value, v.value
        if self.bias_correction:
            momentum = momentum / (1.0 - ops.power(self.beta_1, self.step()))
            velocity = velocity / (1.0 - ops.power(self.beta_2, self.step()))
        update = momentum / (ops.sqrt(velocity) + self.epsilon)
        return update + self.decay_of(variable) * variable

    def _apply_weight_decay(self, variables):
        """Nothing: the decay is part of the update."""

    def _clip_gradients(self, gradients):
        backend = keras.config.backend()
        if backend == "tensorflow":
            gradients = sum_slices(gradients)
        clip = CLIP_BY_GLOBAL_NORM[backend]
        gradients, self.finite = clip(gradients, self.global_clipnorm)
        return gradients if self.global_clipnorm else super()._clip_gradients(gradients)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        self.update_all(grads, trainable_variables, learning_rate)
        # Keras is about to count this step, and has counted the rest of its group.
        group = self.gradient_accumulation_steps or 1
        self._iterations.assign_sub(ops.where(self.finite, 0, group))
        self.finite = None

    def update_all(self, gradients, variables, learning_rate):
        """Makes the update of each variable; none if the gradients are not finite."""
        learning_rate = ops.where(self.finite, ops.convert_to_tensor(learning_rate), 0.0)
        super()._backend_update_step(gradients, variables, learning_rate)

    def get_config(self):
        return {
            **super().get_config(),
            "weight_decay": self.weight_decay,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "no_decay": list(self.no_decay),
        }
