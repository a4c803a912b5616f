"""cuDNN's attention under JAX, with lengths or offsets of sequences instead of masks.

All queries, keys and values are (B, heads, L, D), in bfloat16 or float16.

The kernel can drop probabilities too, but JAX writes the seed of the dropout into the compiled
program, and the program counts its runs from 0. So a training that is resumed would draw other
numbers than a training that was not interrupted, and a block that is computed a second time for its
gradient would draw other numbers than the first time. Therefore nothing here drops.

Source: jax-ml/jax#25812 (https://github.com/jax-ml/jax/pull/25812).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from keras_bert_suite.annotations import Tensor

#: The first version of cuDNN that takes offsets (jax-ml/jax#25812).
OFFSETS_SINCE = 90600


def is_available(
    query: Tensor, has_mask: bool = False, has_offsets: bool = False, key: Tensor | None = None
) -> bool:
    """Whether cuDNN takes this case, also in training.

    Args:
        query: (B, heads, L, D). Its shape and dtype are read.
        key: (B, heads, K, D), or None if it has the shape of `query`.
        has_mask: bool, whether there is a mask (B, heads, L, L).
        has_offsets: bool, whether there are offsets of sequences. They need a Hopper GPU.
    """
    import jax

    if jax.default_backend() != "gpu" or str(query.dtype) not in ("bfloat16", "float16"):
        return False
    cudnn = _import_cudnn()
    if cudnn is None:
        return False
    try:
        version = cudnn.check_cudnn_version()
        cudnn.check_is_flash_attention(
            query,
            query if key is None else key,
            query if key is None else key,
            cudnn.AttentionLayout.BNTH.value,
            version,
            has_bias=has_mask,
            is_training=True,
            is_packed=has_offsets,
        )
    except (RuntimeError, NotImplementedError):  # No cuDNN; a shape or GPU that it does not take.
        return False
    return cudnn.check_compute_capability("8.0") and not (has_offsets and version < OFFSETS_SINCE)


def find_kernel(query: Tensor, offsets: Tensor) -> Callable[..., Tensor] | None:
    """The kernel for lengths (B,) or for offsets (R, M + 1), or None if cuDNN does not take them.

    For its gradient the kernel keeps M numbers of float32 for each head and place. More than D of
    them would need more memory than a mask.

    Args:
        query: (B, heads, L, D) or (R, heads, W, D). Its shape and dtype are read.
        offsets: int32 (B,) or (R, M + 1). Its shape is read.
    """
    if len(offsets.shape) == 1:
        return attend_to_lengths if is_available(query) else None
    if not 1 < offsets.shape[1] - 1 <= query.shape[-1]:
        return None
    return attend_within_sequences if is_available(query, has_offsets=True) else None


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention of every query to the keys that a mask shows.

    Args:
        query, key, value: (B, heads, L, D).
        mask: bool, broadcastable to (B, heads, L, L), or None. cuDNN reads it as a bias whose last
            two axes are L. Axes of batch and heads may stay 1.

    Returns:
        (B, heads, L, D).
    """
    import jax
    import jax.numpy as jnp

    if mask is not None:
        mask = jnp.broadcast_to(mask, (*mask.shape[:2], query.shape[2], key.shape[2]))
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    output = jax.nn.dot_product_attention(query, key, value, mask=mask, implementation="cudnn")
    return jnp.swapaxes(output, 1, 2)


def attend_to_lengths(query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
    """Attention of every query, also of those on padding, to the first keys of its row.

    Args:
        query, key, value: (B, heads, L, D).
        lengths: int32 (B,), the number of keys. With 0 a query sees the first key.

    Returns:
        (B, heads, L, D).
    """
    import jax
    import jax.numpy as jnp

    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    output = jax.nn.dot_product_attention(
        query,
        key,
        value,
        key_value_seq_lengths=jnp.maximum(lengths, 1),
        implementation="cudnn",
    )
    return jnp.swapaxes(output, 1, 2)


def attend_within_sequences(query: Tensor, key: Tensor, value: Tensor, offsets: Tensor) -> Tensor:
    """Attention of every query to the keys of its own sequence.

    Args:
        query, key, value: (R, heads, W, D), in packed rows.
        offsets: int32 (R, M + 1), see `locate_sequences`.

    Returns:
        (R, heads, W, D).
    """
    import jax.numpy as jnp

    cudnn = _import_cudnn()
    lengths = measure_sequences(offsets, query.shape[2])
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    output = cudnn.dot_product_attention(
        query,
        key,
        value,
        q_seqlen=lengths,
        kv_seqlen=lengths,
        q_offsets=offsets,
        kv_offsets=offsets,
        scale=query.shape[-1] ** -0.5,
        mask_type=cudnn.MaskType.NO_MASK,
    )
    return jnp.swapaxes(output, 1, 2)


def locate_sequences(rows: Tensor, num_rows: int) -> Tensor:
    """Finds where the sequences of packed rows begin.

    The places without a token count as one more sequence, so that each place is in a sequence.

    Args:
        rows: int32 (R, W), the row of the batch at each place, and -1 where there is no token.
        num_rows: int B, rows of the batch.

    Returns:
        int32 (R, M + 1), the first places of the sequences of each packed row, and -1 after the
        last one. M is the maximum number of sequences that a packed row can have.

    Example: rows [[4, 4, 1, -1]] and 5 rows of the batch give [[0, 2, 3, -1, -1]].
    """
    import jax.numpy as jnp

    width = rows.shape[1]
    most = min(num_rows + 1, width)
    begins = jnp.pad(rows[:, 1:] != rows[:, :-1], [[0, 0], [1, 0]], constant_values=True)
    places = jnp.sort(jnp.where(begins, jnp.arange(width, dtype="int32"), width), axis=1)[:, :most]
    return jnp.pad(jnp.where(places < width, places, -1), [[0, 0], [0, 1]], constant_values=-1)


def measure_sequences(offsets: Tensor, width: int) -> Tensor:
    """The lengths of sequences: int32 (R, M), and -1 after the last one.

    Args:
        offsets: int32 (R, M + 1), see `locate_sequences`.
        width: int W, places of a packed row.

    Example: offsets [[0, 2, 3, -1, -1]] and a width of 4 give [[2, 1, 1, -1]].
    """
    import jax.numpy as jnp

    begins, ends = offsets[:, :-1], jnp.where(offsets[:, 1:] < 0, width, offsets[:, 1:])
    return jnp.where(begins < 0, -1, ends - begins)


#: The functions of JAX's private module that are called, with their arguments.
_CALLED = {
    "dot_product_attention": {
        *("q_seqlen", "kv_seqlen", "q_offsets", "kv_offsets"),
        *("scale", "mask_type"),
    },
    "check_is_flash_attention": {"has_bias", "is_training", "is_packed"},
    "check_cudnn_version": set(),
    "check_compute_capability": set(),
}


@functools.cache
def _import_cudnn() -> Any:
    """JAX's private module, which alone takes offsets, or None if it is another one."""
    try:
        from jax._src.cudnn import fused_attention_stablehlo as cudnn
    except ImportError:
        return None
    for name, arguments in _CALLED.items():
        function = getattr(cudnn, name, None)
        if function is None or not arguments <= set(inspect.signature(function).parameters):
            return None
    return cudnn
