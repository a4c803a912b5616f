"""Computes a layer a second time for its gradient, so that its activations need no memory."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras
from keras import ops
from keras.src.backend.common.variables import AutocastScope

from keras_bert_suite.annotations import Tensor

#: A function (values of variables, *inputs) -> (output, next states). It reads no variables.
Step: TypeAlias = Callable[..., tuple[Tensor, list[Tensor]]]


def recompute(
    layer: keras.layers.Layer, function: Callable[..., Tensor], *inputs: Tensor
) -> Tensor:
    """Computes `function(*inputs)` now, and again when its gradient is wanted.

    The activations in between are thrown away. The second time, the function draws the random
    numbers of the first, so output and gradients are those of the function. Keras' own `RematScope`
    draws new ones.

    Args:
        layer: the layer whose variables the function reads. The non-trainable ones that it changes
            must be the states of random generators.
        function: takes tensors and returns one.
        *inputs: float tensors, all that have a gradient.

    Returns:
        what the function returns.

    Source: Chen et al., 2016 (https://arxiv.org/abs/1604.06174).
    """
    variables = layer.variables
    with AutocastScope(None):  # Values in full precision. The layers cast them.
        values = [ops.convert_to_tensor(variable.value) for variable in variables]
    states = [v for v in layer.non_trainable_variables if not keras.backend.is_float_dtype(v.dtype)]

    def step(values: list[Tensor], *inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
        with keras.StatelessScope(list(zip(variables, values, strict=True))) as scope:
            output = function(*inputs)
        return output, [scope.get_current_value(state) for state in states]

    output, next_states = _RECOMPUTERS[keras.config.backend()](step, values, *inputs)
    for state, value in zip(states, next_states, strict=True):
        state.assign(value)
    return output


def _recompute_torch(step: Step, values: list[Tensor], *inputs: Tensor) -> Any:
    from torch.utils.checkpoint import checkpoint

    # It also restores the state of PyTorch's own generators for the second time.
    return checkpoint(step, values, *inputs, use_reentrant=False)


def _recompute_jax(step: Step, values: list[Tensor], *inputs: Tensor) -> Any:
    import jax

    return jax.checkpoint(step)(values, *inputs)


def _recompute_tensorflow(step: Step, values: list[Tensor], *inputs: Tensor) -> Any:
    import tensorflow as tf

    return tf.recompute_grad(step)(values, *inputs)


_RECOMPUTERS = {
    "jax": _recompute_jax,
    "tensorflow": _recompute_tensorflow,
    "torch": _recompute_torch,
}
