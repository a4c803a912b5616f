"""Adds a bias. XLA is slow to sum the gradient of a bias."""

import functools
from collections.abc import Callable

import keras

from keras_bert_suite.annotations import Tensor


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Computes `x + bias`. Under JAX the gradient of the bias is one matrix product.

    The gradient of the bias is the sum over all rows. XLA sums the rows column by column. For the
    logits of a vocabulary this takes as long on a CPU as the product that made the logits. A
    product of ones with the rows reads the rows in order.

    Args:
        x: float (..., D).
        bias: float (D,), of the dtype of `x`.

    Returns:
        float (..., D).
    """
    return _jax_add_bias()(x, bias) if keras.config.backend() == "jax" else x + bias


@functools.cache
def _jax_add_bias() -> Callable[[Tensor, Tensor], Tensor]:
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def add(x: Tensor, bias: Tensor) -> Tensor:
        return x + bias

    def forward(x: Tensor, bias: Tensor) -> tuple[Tensor, None]:
        return x + bias, None

    def backward(_: None, gradient: Tensor) -> tuple[Tensor, Tensor]:
        rows = gradient.reshape(-1, gradient.shape[-1])
        ones = jnp.ones(len(rows), rows.dtype)
        total = jnp.matmul(ones, rows, preferred_element_type=jnp.float32)
        return gradient, total.astype(rows.dtype)

    add.defvjp(forward, backward)
    return add
