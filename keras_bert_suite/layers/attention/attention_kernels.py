"""Computes softmax(Q K^T / sqrt(D)) V with the fastest kernel that is right for the case.

Queries are (B, heads, L, D), keys and values (B, heads, S, D). The mask is bool and broadcastable
to (B, heads, L, S). It is true where a query may attend to a key. The bias is float and
broadcastable to the same shape. It is added to Q K^T / sqrt(D).
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention import cudnn_attention
from keras_bert_suite.layers.eager_pass import once, tensor_functions, to_float32

#: The score in float32 of a key that a mask hides.
NEVER = -1e30


def plain_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    drop: Callable[[Tensor], Tensor] | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """The formula itself, with the softmax in float32 whatever the compute dtype.

    Args:
        query: float (B, heads, L, D).
        key, value: float (B, heads, S, D). The result has the dtype of `value`.
        mask: bool, broadcastable to (B, heads, L, S), or None.
        drop: function that drops some of the probabilities, or None.
        bias: float, broadcastable to (B, heads, L, S), or None.
    """
    probabilities = attention_probabilities(query, key, mask, bias)
    if value.dtype != probabilities.dtype:
        probabilities = ops.cast(probabilities, value.dtype)
    if drop is not None:
        probabilities = drop(probabilities)
    return tensor_functions().matmul(probabilities, value)


def attention_probabilities(
    query: Tensor, key: Tensor, mask: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """How much each query attends to each key: float32 (B, heads, L, S); see `plain_attention`."""
    scale = query.shape[-1] ** -0.5
    xp = tensor_functions()
    scores = xp.matmul(query * scale, xp.swapaxes(key, -1, -2))
    if bias is not None:
        scores = to_float32(scores) + to_float32(bias)
    return normalize_scores(scores, mask)


def normalize_scores(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax of scores (B, heads, L, S) over the keys that a mask shows, in float32."""
    xp = tensor_functions()
    scores = to_float32(scores)
    if mask is not None:
        scores = xp.where(ops.convert_to_tensor(mask), scores, NEVER)
    if scores.shape[-1] == 1:
        # Keras would warn of the softmax of one number, and of weights without a gradient.
        return ops.exp(scores - scores)
    return xp.softmax(scores, axis=-1)


def fused_attention(query: Tensor, dropout: float) -> Callable[..., Tensor] | None:
    """Returns the backend's fused kernel for this case, or None where it has none.

    | backend    | case                | no dropout in force          | dropout in force   |
    | ---------- | ------------------- | ---------------------------- | ------------------ |
    | torch      | on a CPU            | scaled_dot_product_attention | None               |
    |            | on CUDA             | the same                     | the same           |
    | jax        | float16 on a CPU    | None                         | None               |
    |            | a GPU               | `cudnn_attention`, or XLA's  | None               |
    |            | others              | XLA's fusion                 | None               |
    | tensorflow | all                 | None: it has no such kernel  | None               |

    Where there is no kernel, `plain_attention` computes the formula, and XLA or PyTorch's compiler
    may fuse it. Tests see the calls of the kernels of GPUs, and `benchmarks/gpu_attention.py` their
    results.

    Args:
        query: float (B, heads, L, D). Its device and dtype are read.
        dropout: float, 0.0 outside training.

    Returns:
        function(query, key, value, mask, dropout, bias) or None.
    """
    kernel = {"torch": _torch_attention, "jax": _jax_attention}.get(keras.config.backend())
    if kernel is None or (dropout and not getattr(query, "is_cuda", False)):
        return None
    if query.dtype == "float16" and is_jax_on_cpu():
        return None
    return kernel


def _torch_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    import torch

    if mask is not None:
        mask = once(_open_empty_rows, mask)
    if bias is not None:
        bias = bias.to(query.dtype)
        mask = bias if mask is None else torch.where(mask, bias, -torch.inf)
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout
    )


def _open_empty_rows(mask: Tensor) -> Tensor:
    """A mask in which a query that sees no key sees every key.

    It would give NaN in the kernels that take a boolean mask. Its output is never read.
    """
    return mask | ~mask.any(dim=-1, keepdim=True)


def _jax_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    """Ignores dropout: with dropout in force `fused_attention` returns no kernel for JAX."""
    context = cudnn_attention.attend(query, key, value, mask) if bias is None else None
    if context is not None:
        return context
    # `flash_attention=None` would take kernels which are not right for all masks: on a TPU, Keras
    # reduces the mask to its first row.
    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    output = ops.dot_product_attention(
        query, key, value, bias=bias, mask=mask, flash_attention=False
    )
    return ops.swapaxes(output, 1, 2)


def is_jax_on_cpu() -> bool:
    """Whether this is the JAX backend on a CPU.

    There XLA lacks a product of float16 that is summed in float32. It has one of bfloat16 whose
    result is float32, and multiplies in float32 if the result is bfloat16.
    """
    if keras.config.backend() != "jax":
        return False
    import jax

    return jax.default_backend() == "cpu"
