"""Computes a layer a second time for its gradient, so that its activations need no memory."""

from collections.abc import Callable

import keras
from keras import ops
from keras.src.backend.common.variables import AutocastScope

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.adapters.adaptable import act, find_acting


def recompute(
    layer: keras.layers.Layer, function: Callable[..., Tensor], *inputs: Tensor
) -> Tensor:
    """Computes `function(*inputs)` now, and again when its gradient is wanted.

    The activations in between are thrown away. The second time, the function draws the same random
    numbers, so output and gradients stay the same. Keras' `RematScope` draws new numbers.

    The function returns a tensor. `inputs` has all its tensors with a gradient. It reads the
    variables of `layer`. It may change only the states of random generators.

    Source: Chen et al., 2016 (https://arxiv.org/abs/1604.06174).
    """
    variables = layer.variables
    with AutocastScope(None):  # Values in full precision. The layers cast them.
        values = [ops.convert_to_tensor(variable.value) for variable in variables]
    states = [v for v in layer.non_trainable_variables if not keras.backend.is_float_dtype(v.dtype)]

    acting = find_acting()  # The second time comes after the call of the model.

    def step(values: list[Tensor], *inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
        pairs = list(zip(variables, values, strict=True))
        with act(acting), keras.StatelessScope(pairs) as scope:
            output = function(*inputs)
        return output, [scope.get_current_value(state) for state in states]

    backend = keras.config.backend()
    if backend == "torch":
        from torch.utils.checkpoint import checkpoint

        # It also restores the state of PyTorch's own generators for the second time.
        output, next_states = checkpoint(step, values, *inputs, use_reentrant=False)
    elif backend == "jax":
        import jax

        output, next_states = jax.checkpoint(step)(values, *inputs)
    else:
        import tensorflow as tf

        output, next_states = tf.recompute_grad(step)(values, *inputs)
    for state, value in zip(states, next_states, strict=True):
        state.assign(value)
    return output
