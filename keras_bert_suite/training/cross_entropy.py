"""The cross-entropy over a vocabulary, in as few passes over the logits as the backend allows.

The logits of a step are larger than all other arrays of a small BERT, so every pass takes time.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor


def sparse_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Cross-entropy of class ids, int (...), and logits, (..., V), computed in float32: (...)."""
    logits = ops.cast(logits, "float32")
    if keras.config.backend() == "torch":
        return _torch_cross_entropy(labels, logits)
    if keras.config.backend() == "jax":
        return _jax_cross_entropy()(logits, labels)
    rows = ops.reshape(logits, (-1, logits.shape[-1]))
    flat = _tensorflow_cross_entropy()(rows, ops.reshape(ops.cast(labels, "int32"), (-1,)))
    return ops.reshape(flat, ops.shape(logits)[:-1])


def _torch_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Calls PyTorch's kernel. Keras would make a one-hot array as large as the logits."""
    import torch

    flat = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        ops.cast(labels, "int64").reshape(-1),
        reduction="none",
    )
    return flat.reshape(tuple(logits.shape[:-1]))


@functools.cache
def _jax_cross_entropy() -> Callable[[Tensor, Tensor], Tensor]:
    """Makes a function of (logits, labels). Its gradient, softmax - one_hot, takes one pass."""
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
        return forward(logits, labels)[0]

    def forward(logits: Tensor, labels: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        normalizer = jax.nn.logsumexp(logits, axis=-1)
        chosen = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
        return normalizer - chosen, (logits, labels, normalizer)

    def backward(saved: tuple[Tensor, ...], gradient: Tensor) -> tuple[Tensor, None]:
        logits, labels, normalizer = saved
        softmax = jnp.exp(logits - normalizer[..., None])
        one_hot = jnp.arange(logits.shape[-1]) == labels[..., None]
        return (softmax - one_hot) * gradient[..., None], None

    cross_entropy.defvjp(forward, backward)
    return cross_entropy


@functools.cache
def _tensorflow_cross_entropy() -> Callable[[Tensor, Tensor], Tensor]:
    """Makes a function of (logits (N, V), labels (N,)).

    TensorFlow's own kernel computes the gradient element by element, and takes more than twice as
    long on a CPU as its softmax and the passes here.
    """
    import tensorflow as tf

    @tf.custom_gradient
    def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        softmax = tf.nn.softmax(logits)
        # The largest probability is at least 1 / V, so its logarithm is exact, also where the
        # label's probability is rounded to 0.
        largest = tf.reduce_max(logits, axis=-1)
        normalizer = largest - tf.math.log(tf.reduce_max(softmax, axis=-1))
        chosen = tf.gather(logits, labels, batch_dims=1)

        def backward(gradient: Tensor) -> tuple[Tensor, None]:
            indices = tf.stack([tf.range(tf.size(labels)), labels], axis=-1)
            scaled = softmax * gradient[:, None]
            return tf.tensor_scatter_nd_sub(scaled, indices, gradient), None

        return normalizer - chosen, backward

    return cross_entropy
