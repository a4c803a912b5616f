"""Computes softmax(Q K^T / sqrt(D)) V with the fastest kernel that is right for the case.

All tensors are (B, heads, L, D). The mask is bool and broadcastable to (B, heads, L, L). It is true
where a query may attend to a key. `cudnn_attention.py` and `nested_attention.py` have kernels of
GPUs that take lengths or offsets of sequences instead of the mask.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention import cudnn_attention, nested_attention


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
    """The attention probabilities: how much each query attends to each key.

    Args:
        query, key, mask: as for `plain_attention`.

    Returns:
        float32 (B, heads, L, L). It sums to 1 over the last axis.
    """
    scale = query.shape[-1] ** -0.5
    return normalize_scores(ops.matmul(query * scale, ops.swapaxes(key, -1, -2)), mask)


def normalize_scores(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax of the scores of keys, over the keys that a query may attend to.

    Args:
        scores: float (B, heads, L, L).
        mask: bool, broadcastable to (B, heads, L, L), or None.

    Returns:
        float32 (B, heads, L, L).
    """
    scores = ops.cast(scores, "float32")
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
    if cudnn_attention.is_available(query, has_mask=mask is not None, key=key):
        return cudnn_attention.attend(query, key, value, mask)
    # `flash_attention=None` would take kernels which are not right for all masks: on a TPU, Keras
    # reduces the mask to its first row.
    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    output = ops.dot_product_attention(query, key, value, mask=mask, flash_attention=False)
    return ops.swapaxes(output, 1, 2)


_FUSED = {"torch": _torch_attention, "jax": _jax_attention}


def fused_attention(
    query: Tensor, dropout: float, sequence_offsets: Tensor | None = None
) -> Callable[..., Tensor] | None:
    """Returns the backend's fused kernel for this case, or None where it has none.

    | backend    | mask                     | no dropout in force        | dropout in force       |
    | ---------- | ------------------------ | -------------------------- | ---------------------- |
    | torch      | packed rows, on CUDA     | nested tensors: varlen     | the same               |
    |            | all others               | scaled_dot_product_        | the same on CUDA;      |
    |            |                          | attention                  | CPU: None              |
    | jax        | aligned rows, on CUDA    | cuDNN with lengths         | None                   |
    |            | packed rows, on Hopper   | cuDNN with offsets         | None                   |
    |            | all others               | cuDNN with a bias on CUDA, | None                   |
    |            |                          | else XLA's fusion;         |                        |
    |            |                          | float16 on a CPU: None     |                        |
    | tensorflow | all                      | None: it has no such kernel| None                   |

    cuDNN takes bfloat16 and float16, heads of a multiple of 8 up to 128 features (Hopper: 256), and
    with a bias an even L. In other cases XLA's fusion is taken. PyTorch chooses among its kernels.
    Where there is no kernel, `plain_attention` computes the formula, and XLA or PyTorch's compiler
    may fuse it. The kernels of GPUs are tested as far as a CPU can: their calls, not their results.

    Args:
        query: float (B, heads, L, D). Its device, dtype and shape are read.
        dropout: float, 0.0 outside training.
        sequence_offsets: see `SelfAttention.call`; None or empty if the mask is all that is known.

    Returns:
        function(query, key, value, mask, dropout) or None.
    """
    if dropout and not getattr(query, "is_cuda", False):
        return None
    if query.dtype == "float16" and is_jax_on_cpu():
        return None
    if sequence_offsets is not None and sequence_offsets.shape[0]:
        kernel = _find_offset_kernel(query, sequence_offsets)
        if kernel is not None:
            return kernel
    return _FUSED.get(keras.config.backend())


def _find_offset_kernel(query: Tensor, offsets: Tensor) -> Callable[..., Tensor] | None:
    """The kernel that takes lengths or offsets instead of the mask, or None."""
    if keras.config.backend() == "torch":
        return lambda q, k, v, mask, dropout: nested_attention.attend_within_sequences(
            q, k, v, offsets, dropout
        )
    attend = cudnn_attention.find_kernel(query, offsets)
    return None if attend is None else lambda q, k, v, mask, dropout: attend(q, k, v, offsets)


def takes_lengths(head_dim: int, dtype: str) -> bool:
    """Whether there is a kernel that takes the lengths of rows instead of a padding mask.

    Args:
        head_dim: int, features of a head.
        dtype: string, the compute dtype.
    """
    if keras.config.backend() != "jax" or is_jax_on_cpu():
        return False
    import jax

    return cudnn_attention.is_available(jax.ShapeDtypeStruct((1, 1, 1, head_dim), dtype))


def locate_sequences(rows: Tensor, num_rows: int) -> Tensor:
    """Finds where the sequences of packed rows begin, if a kernel of this device takes that.

    Args:
        rows: int (R, W), the row of the batch at each place, and -1 where there is no token.
        num_rows: int B, rows of the batch.

    Returns:
        int, the offsets of `cudnn_attention` or `nested_attention`; (0,) if no kernel takes them.
    """
    backend = keras.config.backend()
    if backend == "torch" and rows.is_cuda:
        import torch

        # PyTorch's compiler would leave its graph to count the sequences.
        if not torch.compiler.is_compiling():
            return nested_attention.locate_sequences(rows)
    if backend == "jax" and not is_jax_on_cpu():
        return cudnn_attention.locate_sequences(rows, num_rows)
    return ops.zeros((0,), dtype="int32")


def is_jax_on_cpu() -> bool:
    """Whether this is the JAX backend on a CPU.

    There XLA lacks a product of float16 that is summed in float32. It has one of bfloat16 whose
    result is float32, and multiplies in float32 if the result is bfloat16.
    """
    if keras.config.backend() != "jax":
        return False
    import jax

    return jax.default_backend() == "cpu"
