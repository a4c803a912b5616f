"""Gradients by the own means of each backend."""

import keras
from keras import ops
from peer_weights import to_numpy


def compute_gradients(backbone, inputs, weighting):
    """The gradients of a weighted sum of outputs.

    Args:
        backbone: `keras.Model` with a dict of outputs.
        inputs: dict of NumPy arrays.
        weighting: dict of the name of an output -> array of its shape.

    Returns:
        dict of path -> array, of the variables on which the outputs depend.
    """
    variables = backbone.trainable_variables

    def loss(outputs):
        return sum(ops.sum(ops.multiply(outputs[name], weighting[name])) for name in weighting)

    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            total = loss(backbone(inputs))
        gradients = tape.gradient(total, [v.value for v in variables])
        gradients = [g if g is None else tf.convert_to_tensor(g) for g in gradients]
    elif keras.config.backend() == "jax":
        import jax

        def stateless_loss(values):
            state = [v.value for v in backbone.non_trainable_variables]
            return loss(backbone.stateless_call(values, state, inputs)[0])

        gradients = jax.jit(jax.grad(stateless_loss))([v.value for v in variables])
    else:
        backbone.zero_grad()
        loss(backbone(inputs)).backward()
        gradients = [v.value.grad for v in variables]
    found = zip(variables, gradients, strict=True)
    return {variable.path: to_numpy(g) for variable, g in found if g is not None}


def input_gradients(function, arrays):
    """The gradients of the sum of squares of an output, with respect to the arrays."""
    if keras.config.backend() == "jax":
        import jax

        return jax.grad(lambda arrays: ops.sum(function(*arrays) ** 2))(list(arrays))
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        tensors = list(map(tf.constant, arrays))
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            total = ops.sum(function(*tensors) ** 2)
        return tape.gradient(total, tensors)
    tensors = [ops.convert_to_tensor(array).requires_grad_() for array in arrays]
    ops.sum(function(*tensors) ** 2).backward()
    return [tensor.grad for tensor in tensors]
