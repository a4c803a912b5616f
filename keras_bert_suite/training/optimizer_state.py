"""Fits the state of an optimizer to the weights that are trained, which may change."""

from collections.abc import Sequence

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
    before = {variable.path: variable for variable in inner.variables}
    num_own = len(type(inner).from_config(inner.get_config()).variables)
    for variable in inner.variables[num_own:]:
        inner._tracker.untrack(variable)
    inner._trainable_variables_indices = {}
    inner.built = False
    inner.build(list(weights))
    for variable in inner.variables[num_own:]:
        old = before.get(variable.path)
        if old is not None and old.shape == variable.shape:
            variable.assign(ops.convert_to_tensor(old))
    if inner.use_ema:
        averages = inner._model_variables_moving_average
        for weight, average in zip(weights, averages, strict=True):
            if average is not None and average.path not in before:
                average.assign(ops.convert_to_tensor(weight))
    if optimizer is not inner:  # A `LossScaleOptimizer` has no state of its own for a weight.
        # `setattr` of Keras would take the weights for variables of the optimizer.
        for name in ("_trainable_variables", "_trainable_variables_indices"):
            vars(optimizer)[name] = getattr(inner, name)
    return True
