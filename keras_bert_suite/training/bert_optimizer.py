"""The common base of the optimizers of BERT."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops
from keras.initializers import Constant

from keras_bert_suite.annotations import Config, LearningRate, Tensor
from keras_bert_suite.argument_checks import check_below_one, check_not_negative
from keras_bert_suite.training.fused_updates import CLIP_BY_GLOBAL_NORM
from keras_bert_suite.training.gradient_sums import sum_before_clipping
from keras_bert_suite.training.layer_decay import read_layer_decay
from keras_bert_suite.training.lookahead import (
    make_slow_weights,
    note_beginning,
    read_lookahead,
    return_part,
)
from keras_bert_suite.training.schedules import LinearWarmupDecay
from keras_bert_suite.training.weight_patterns import (
    NO_DECAY,
    find_all,
    is_found,
    is_plain_vector,
    read_multipliers,
)


class BertOptimizer(keras.optimizers.Optimizer):
    """The moments of Adam, clipping by the global norm, and no decay for biases and norms.

    If the norm of the gradients is not finite, the step is skipped: weights, moments and
    `iterations` stay as they are. If gradients are accumulated, all batches of the step are
    dropped.

    A step is an update of the weights. A learning rate schedule counts the updates, also when each
    update takes the gradients of several batches.

    Args: see `AdamW`.

    Attributes:
        decay: float, the argument `weight_decay`. The attribute `weight_decay` belongs to Keras. It
            is None, because Keras would decay a second time.
    """

    #: During a step: bool scalar tensor, whether the gradients are finite.
    finite = None

    #: tuple of (path, name) of the weights that are not trained now. Patterns may find them.
    frozen_names: tuple[tuple[str, str], ...] = ()

    #: dict of path -> factor by `layer_decay`, of all weights of a task; see `set_layer_rates`.
    layer_factors: Mapping[str, float] | None = None

    def __init__(
        self,
        learning_rate: LearningRate,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        global_clipnorm: float | None = 1.0,
        bias_correction: bool = False,
        no_decay: Sequence[str] | None = NO_DECAY,
        no_decay_names: Sequence[str] | None = None,
        rate_multipliers: Mapping[str, float] | Sequence[tuple[str, float]] | None = None,
        layer_decay: float | None = None,
        layer_numbering: str | None = None,
        lookahead_steps: int | None = None,
        lookahead_share: float | None = None,
        gradient_accumulation_steps: int | None = None,
        momentum_dtype: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_below_one(beta_1=beta_1, beta_2=beta_2)
        check_not_negative("epsilon", epsilon)
        check_not_negative("weight_decay", weight_decay or 0.0)
        layers = read_layer_decay(layer_decay, layer_numbering)
        lookahead = read_lookahead(lookahead_steps, lookahead_share)
        if momentum_dtype not in (None, "bfloat16"):
            raise ValueError(
                "momentum_dtype must be 'bfloat16', or None for the dtype of each variable, got "
                f"{momentum_dtype!r}."
            )
        super().__init__(
            learning_rate=learning_rate,
            global_clipnorm=global_clipnorm,
            gradient_accumulation_steps=gradient_accumulation_steps,
            **kwargs,
        )
        # A variable, so that a compiled step reads its values. JAX may keep a step after Keras has
        # dropped it.
        self._schedule_numbers: Any = None
        if isinstance(learning_rate, LinearWarmupDecay) and learning_rate.total_steps is None:
            # Nothing reads it. Files of trained tasks have it.
            self.add_variable((), Constant(-1.0), name="held_rate")
            self._schedule_numbers = self.add_variable(
                (4,), "ones", dtype="float32", name="schedule_numbers"
            )
        self.decay = weight_decay or 0.0
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.momentum_dtype = momentum_dtype
        self.no_decay = tuple(no_decay or ())
        self.no_decay_names = tuple(no_decay_names or ())
        self.rate_multipliers = read_multipliers(rate_multipliers)
        self.layer_decay, self.layer_numbering = layers
        self.lookahead_steps, self.lookahead_share = lookahead

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        self._num_before_build = len(self.variables)
        super().build(variables)
        if keras.config.backend() == "tensorflow":
            # Under a strategy, Keras' models too must clip and judge the gradients of all replicas.
            sum_before_clipping(self)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        if self.lookahead_steps is not None:
            self._slow_weights = make_slow_weights(self, variables)
        all_names = [*((v.path, v.name) for v in variables), *self.frozen_names]
        paths, names = (list(texts) for texts in zip(*all_names, strict=True))
        paths_found = find_all("no_decay", self.no_decay, paths, "paths")
        names_found = find_all("no_decay_names", self.no_decay_names, names, "names")
        has_default = {*NO_DECAY} <= {*self.no_decay}
        are_vectors = [has_default and is_plain_vector(v) for v in variables]
        are_vectors += [False] * len(self.frozen_names)
        self._found_by_no_decay = [
            any(of) for of in zip(paths_found, names_found, are_vectors, strict=True)
        ]
        patterns = [pattern for pattern, _ in self.rate_multipliers]
        find_all("rate_multipliers", patterns, paths, "paths")
        self._multipliers = [self.find_rate_factor(v.path) for v in variables]

    def load_own_variables(self, store: Any) -> None:
        """Loads the state. An optimizer that was saved before its first step has no moments yet."""
        if not self.built or len(store.keys()) != self._num_before_build:
            super().load_own_variables(store)
            return
        for number, variable in enumerate(self.variables[: self._num_before_build]):
            variable.assign(store[str(number)])

    def drop_idle_patterns(
        self, before: Sequence[keras.Variable], after: Sequence[keras.Variable]
    ) -> None:
        """Drops the patterns whose variables are not trained any more, from `before` to `after`.

        `build` raises a ValueError for a pattern that finds none of its variables. A pattern that
        has never found a variable stays, so that `build` names it.
        """

        def is_kept(pattern: str, attribute: str) -> bool:
            finds = [
                any(is_found(pattern, getattr(v, attribute)) for v in variables)
                for variables in (before, after)
            ]
            return finds != [True, False]

        self.no_decay = tuple(p for p in self.no_decay if p in NO_DECAY or is_kept(p, "path"))
        self.no_decay_names = tuple(p for p in self.no_decay_names if is_kept(p, "name"))
        self.rate_multipliers = tuple(r for r in self.rate_multipliers if is_kept(r[0], "path"))

    def add_variable(
        self,
        shape: tuple[int, ...],
        initializer: Any = "zeros",
        dtype: str | None = None,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> keras.Variable:
        """Adds a variable as Keras does, but a momentum has `momentum_dtype`."""
        if (name or "").endswith("momentum"):
            dtype = self.momentum_dtype or dtype
        return super().add_variable(shape, initializer, dtype, name=name, **kwargs)

    @property
    def weight_decay(self) -> None:
        """None, because Keras would decay a second time. Our attribute is `decay`."""
        return None

    @weight_decay.setter
    def weight_decay(self, value: float | None) -> None:
        if value is not None:
            raise AttributeError(
                f"weight_decay cannot be set to {value} after the optimizer was made: Keras would "
                "decay a second time. Set `decay`, or pass `weight_decay` to the constructor."
            )

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[keras.Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        """Excludes further variables from weight decay.

        Args:
            var_list: list of `keras.Variable`.
            var_names: list of regular expressions. Each is searched in `variable.name`, which is
                the last part of `variable.path`.

        Raises:
            ValueError: if the optimizer is built already. When it is built: if an expression is
                found in no variable.
        """
        if self.built:
            raise ValueError(
                "exclude_from_weight_decay() comes too late, the optimizer is built. Call it "
                "before the first step, or pass `no_decay` to the constructor."
            )
        paths = [f"^{re.escape(variable.path)}$" for variable in var_list or ()]
        self.no_decay = (*self.no_decay, *paths)
        self.no_decay_names = (*self.no_decay_names, *(var_names or ()))

    def is_excluded(self, variable: keras.Variable) -> bool:
        """bool, whether `no_decay` finds a variable."""
        return self._found_by_no_decay[self._get_variable_index(variable)]

    def decay_of(self, variable: keras.Variable) -> float:
        """float, the weight decay of a variable."""
        return 0.0 if self.is_excluded(variable) else self.decay

    def rate_multiplier_of(self, variable: keras.Variable) -> float:
        """float, the factor of the learning rate for a variable, see `find_rate_factor`."""
        return self._multipliers[self._get_variable_index(variable)]

    def find_rate_factor(self, path: str) -> float:
        """The factor of the learning rate for the variable of a path.

        It is the product of the factor of its layer, by `layer_decay`, and of its factor in
        `rate_multipliers`.

        Raises:
            ValueError: if there is a `layer_decay`, and the layer of the variable is not known.
        """
        found = (factor for pattern, factor in self.rate_multipliers if is_found(pattern, path))
        factor = next(found, 1.0)
        if self.layer_decay is None:
            return factor
        if path not in (self.layer_factors or {}):
            raise ValueError(
                f"layer_decay={self.layer_decay} needs the layer of each variable, and that of "
                f"{path!r} is not known. The `compile` of a task of this package tells it of all "
                "weights that the task has then, so compile after weights were added. A plain "
                "keras.Model and `fit_on_features` have no layers of an encoder: use "
                "rate_multipliers there."
            )
        assert self.layer_factors is not None
        return factor * self.layer_factors[path]

    @property
    def learning_rate(self) -> Tensor:
        """float scalar, the learning rate of the coming update.

        A number cannot be assigned if a schedule sets the rate. Another schedule can.
        """
        schedule = self._learning_rate
        if not isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
            return super().learning_rate
        # Keras would pass the number of batches, also if several batches make an update.
        if not self.reads_schedule:
            return schedule(self.iterations)
        schedule.check_length()
        numbers = ops.unstack(ops.convert_to_tensor(self._schedule_numbers), 4)
        return schedule.rate_at(self.iterations, *numbers)

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> Tensor:
        keras.optimizers.Optimizer.learning_rate.fset(self, value)
        if self.reads_schedule and self._learning_rate.has_length:
            self.read_schedule()

    @property
    def reads_schedule(self) -> bool:
        """bool, whether compiled steps read the numbers of the schedule from a variable."""
        return self._schedule_numbers is not None and isinstance(
            self._learning_rate, LinearWarmupDecay
        )

    def read_schedule(self) -> None:
        """Hands the numbers of the schedule, which may have changed, to compiled steps."""
        self._schedule_numbers.assign(self._learning_rate.numbers)

    def update_step(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor
    ) -> None:
        """Updates a variable, and with `lookahead_steps` its slow weight."""
        self.begin_lookahead([variable])
        self.update_variable(gradient, variable, learning_rate)
        self.end_lookahead([variable])

    def update_variable(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor
    ) -> None:
        """Updates a variable. `learning_rate` is 0 if the gradients are not finite."""
        raise NotImplementedError

    def begin_lookahead(self, variables: Sequence[keras.Variable]) -> None:
        """Comes before the update of variables."""
        for variable in variables if self.lookahead_steps is not None else ():
            slow = self._slow_weights[self._get_variable_index(variable)]
            note_beginning(self, slow, variable)

    def end_lookahead(self, variables: Sequence[keras.Variable]) -> None:
        """Comes after the update of variables."""
        for variable in variables if self.lookahead_steps is not None else ():
            slow = self._slow_weights[self._get_variable_index(variable)]
            return_part(self, slow, variable)

    def step(self) -> Tensor:
        """float32 scalar, the number of the coming update, from 1."""
        return ops.cast(self.iterations + 1, "float32")

    def adam_update(self, gradient: Tensor, variable: keras.Variable) -> Tensor:
        """Updates the moments, and returns m / (sqrt(v) + epsilon) + weight_decay p.

        The update of a 16-bit variable is computed in float32, because 0.999 is 1 in bfloat16. The
        update takes the new moments before they are rounded to 16 bits.
        """
        index = self._get_variable_index(variable)
        dtype = keras.backend.result_type(variable.dtype, "float32")
        moments = self._momentums[index], self._velocities[index]
        m, v = (ops.cast(moment, dtype) for moment in moments)
        gradient = ops.cast(gradient, dtype)
        momentum = self.beta_1 * m + (1 - self.beta_1) * gradient
        velocity = self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient)
        momentum, velocity = (
            ops.where(self.finite, new, old) for new, old in ((momentum, m), (velocity, v))
        )
        for moment, value in zip(moments, (momentum, velocity), strict=True):
            self.assign(moment, ops.cast(value, moment.dtype))
        if self.bias_correction:
            momentum = momentum / (1.0 - ops.power(self.beta_1, self.step()))
            velocity = velocity / (1.0 - ops.power(self.beta_2, self.step()))
        update = momentum / (ops.sqrt(velocity) + self.epsilon)
        return update + self.decay_of(variable) * ops.cast(variable, dtype)

    def _clip_gradients(self, gradients: list[Tensor]) -> list[Tensor]:
        clip = CLIP_BY_GLOBAL_NORM[keras.config.backend()]
        gradients, self.finite = clip(gradients, self.global_clipnorm)
        return gradients if self.global_clipnorm else super()._clip_gradients(gradients)

    def _backend_update_step(
        self,
        grads: list[Tensor],
        trainable_variables: Sequence[keras.Variable],
        learning_rate: Tensor,
    ) -> None:
        self.update_all(grads, trainable_variables, learning_rate)
        # Keras has counted the earlier batches of this step, and will now count the last one.
        num_batches = self.gradient_accumulation_steps or 1
        self._iterations.assign_sub(ops.where(self.finite, 0, num_batches))
        self.finite = None

    def update_all(
        self, gradients: list[Tensor], variables: Sequence[keras.Variable], learning_rate: Tensor
    ) -> None:
        """Updates each variable. Nothing is updated if the gradients are not finite."""
        learning_rate = ops.where(self.finite, ops.convert_to_tensor(learning_rate), 0.0)
        super()._backend_update_step(gradients, variables, learning_rate)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "weight_decay": self.decay,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "momentum_dtype": self.momentum_dtype,
            "no_decay": list(self.no_decay),
            "no_decay_names": list(self.no_decay_names),
            "rate_multipliers": [list(row) for row in self.rate_multipliers],
            "layer_decay": self.layer_decay,
            "layer_numbering": self.layer_numbering,
            "lookahead_steps": self.lookahead_steps,
            "lookahead_share": self.lookahead_share,
        }
