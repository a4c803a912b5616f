"""The cross-entropy over a vocabulary, in as few passes over the logits as the backend allows.

The logits of a step are larger than all other arrays of a small BERT, so every pass takes time.
"""

import functools
from collections.abc import Callable

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor


def sparse_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Cross-entropy of class ids and logits, computed in float32.

    Args:
        labels: int (...).
        logits: float (..., V).

    Returns:
        float32 (...).
    """
    logits = ops.cast(logits, "float32")
    if keras.config.backend() == "torch":
        return _torch_cross_entropy(labels, logits)
    if keras.config.backend() == "jax":
        return _jax_cross_entropy()(logits, labels)
    return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)


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
