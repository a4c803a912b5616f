"""Fits the state of an optimizer to the weights that are trained, which may change."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.training.bert_optimizer import BertOptimizer
from keras_bert_suite.training.schedule_lengths import unwrap_optimizer


def fit_optimizer(
    optimizer: keras.optimizers.Optimizer,
    weights: Sequence[keras.Variable],
    frozen: Sequence[keras.Variable],
) -> bool:
    """Builds an optimizer for some weights, or builds it again if these are other weights.

    Weights that stay keep their moments, gradients and averages. Weights that were thawed begin as
    in a new optimizer. The number of steps stays. `frozen` has the other weights of the model,
    which the patterns of a `BertOptimizer` may find.

    Returns:
        bool, whether the optimizer has changed.
    """
    inner = unwrap_optimizer(optimizer)
    if inner.built and list(map(id, inner._trainable_variables)) == list(map(id, weights)):
        return False
    if isinstance(inner, BertOptimizer):
        inner.frozen_names = tuple((v.path, v.name) for v in frozen)
    if not inner.built:
        optimizer.build(list(weights))
        return True
    before = _list_state(inner)
    num_own = len(type(inner).from_config(inner.get_config()).variables)
    for variable in inner.variables[num_own:]:
        inner._tracker.untrack(variable)
    inner._trainable_variables_indices = {}
    inner.built = False
    inner.build(list(weights))
    for key, variable in _list_state(inner).items():
        if key in before and before[key] is not variable:
            variable.assign(ops.convert_to_tensor(before[key]))
    for weight in weights if inner.use_ema else ():
        key = ("_model_variables_moving_average", id(weight))
        if key not in before:
            _list_state(inner)[key].assign(ops.convert_to_tensor(weight))
    if optimizer is not inner:  # A `LossScaleOptimizer` has no state for a weight.
        # `setattr` of Keras would take the weights for variables of the optimizer.
        for name in ("_trainable_variables", "_trainable_variables_indices"):
            vars(optimizer)[name] = getattr(inner, name)
    return True


def _list_state(optimizer: keras.optimizers.Optimizer) -> dict[Any, keras.Variable]:
    """The variables of an optimizer: by (attribute, weight) for a list of one for each weight.

    Their paths would not do. Some optimizers of Keras give two variables the same path.
    """
    state: dict[Any, Any] = {}
    for name, value in vars(optimizer).items():
        if isinstance(value, keras.Variable):
            state[name] = value
        elif isinstance(value, dict):
            state.update({(name, key): v for key, v in value.items()})
        elif isinstance(value, list) and name not in ("_variables", "_trainable_variables"):
            if len(value) == len(optimizer._trainable_variables):
                weights = map(id, optimizer._trainable_variables)
                state.update({(name, key): v for key, v in zip(weights, value, strict=True)})
    return {key: value for key, value in state.items() if isinstance(value, keras.Variable)}
