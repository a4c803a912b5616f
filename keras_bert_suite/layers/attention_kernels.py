"""Computes softmax(Q K^T / sqrt(D)) V with the fastest kernel that is right for the case.

All tensors are (B, heads, L, D). The mask is bool and broadcastable to (B, heads, L, L). It is true
where a query may look at a key.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor


def plain_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """The formula itself, with the softmax in float32 whatever the compute dtype.

    Args:
        query, key, value: float (B, heads, L, D).
        mask: bool, broadcastable to (B, heads, L, L), or None.
        drop: function that drops some of the probabilities, or None.

    Returns:
        float (B, heads, L, D) in the dtype of `value`.
    """
    probabilities = ops.cast(attention_probabilities(query, key, mask), value.dtype)
    if drop is not None:
        probabilities = drop(probabilities)
    return ops.matmul(probabilities, value)


def attention_probabilities(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """How much each query takes from each key.

    Args:
        query, key, mask: as for `plain_attention`.

    Returns:
        float32 (B, heads, L, L). It sums to 1 over the last axis.
    """
    scale = query.shape[-1] ** -0.5
    scores = ops.cast(ops.matmul(query * scale, ops.swapaxes(key, -1, -2)), "float32")
    if mask is not None:
        scores = ops.where(mask, scores, -1e30)
    if scores.shape[-1] == 1:
        # Keras would warn of the softmax of one number, and of weights without a gradient.
        return ops.exp(scores - scores)
    return ops.softmax(scores, axis=-1)


def _torch_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    import torch

    if mask is not None:
        # A query that sees no key would give NaN in the kernels that take a boolean mask. So it
        # sees every key instead. Its output is never read.
        mask = mask | ~mask.any(dim=-1, keepdim=True)
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout
    )


def _jax_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Ignores dropout: with dropout in force `fused_attention` returns no kernel for JAX."""
    import jax

    # On a TPU, Keras would reduce the mask to its first row for its kernel, so the compiled formula
    # is taken. On a GPU, Keras takes cuDNN's kernel if it can.
    flash = False if jax.default_backend() == "tpu" else None
    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    output = ops.dot_product_attention(query, key, value, mask=mask, flash_attention=flash)
    return ops.swapaxes(output, 1, 2)


_FUSED = {"torch": _torch_attention, "jax": _jax_attention}


def fused_attention(query: Tensor, dropout: float) -> Callable[..., Tensor] | None:
    """Returns the backend's fused kernel for this case, or None where it has none.

    | backend    | no dropout in force                 | dropout in force              |
    | ---------- | ----------------------------------- | ----------------------------- |
    | torch      | scaled_dot_product_attention        | the same on CUDA; CPU: None   |
    | jax        | cuDNN on GPU, else XLA's fusion;    | None                          |
    |            | float16 on a CPU: None              |                               |
    | tensorflow | None: it has no such kernel         | None                          |

    Args:
        query: float (B, heads, L, D). Only its device and dtype are read.
        dropout: float, 0.0 outside training.
    """
    backend = keras.config.backend()
    if dropout and not getattr(query, "is_cuda", False):
        return None
    if query.dtype == "float16" and is_jax_on_cpu():
        return None
    return _FUSED.get(backend)


def is_jax_on_cpu() -> bool:
    """Whether this is the JAX backend on a CPU.

    There XLA lacks a product of float16 that is summed in float32. It has one of bfloat16 whose
    result is float32, and multiplies in float32 if the result is bfloat16.
    """
    if keras.config.backend() != "jax":
        return False
    import jax

    return jax.default_backend() == "cpu"
