"""cuDNN's attention under JAX, with lengths or offsets of sequences instead of masks.

All queries, keys and values are (B, heads, L, D), in bfloat16 or float16.

The kernel can drop probabilities too, but JAX writes the seed of the dropout into the compiled
program, and the program counts its runs from 0. So a training that is resumed would draw other
numbers than a training that was not interrupted, and a block that is computed a second time for its
gradient would draw other numbers than the first time. Therefore nothing here drops.

Source: jax-ml/jax#25812 (https://github.com/jax-ml/jax/pull/25812).
"""

from typing import Any

from keras_bert_suite.annotations import Tensor

#: The first version of cuDNN that takes offsets (jax-ml/jax#25812).
OFFSETS_SINCE = 90600


def is_on_gpu() -> bool:
    """Whether JAX has a GPU."""
    import jax

    return jax.default_backend() == "gpu"


def takes_heads(head_dim: int, dtype: str) -> bool:
    """Whether cuDNN takes heads of a width and a dtype, with the lengths of rows."""
    if not is_on_gpu():
        return False
    import jax

    return _takes(jax.ShapeDtypeStruct((1, 1, 1, head_dim), dtype))


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, offsets: Tensor | None
) -> Tensor | None:
    """Attention by cuDNN, or None if it does not take the case.

    Args:
        query, key, value: (B, heads, L, D), or of packed rows (R, heads, W, D).
        mask: bool, broadcastable to (B, heads, L, L), or None. cuDNN reads it as a bias whose last
            two axes are L. Axes of batch and heads may stay 1.
        offsets: None, or what says the same as the mask: int32 (B,), the number of keys of each
            row, of which a row with 0 sees the first, or int32 (R, M + 1), see `locate_sequences`.

    Returns:
        (B, heads, L, D), or None.
    """
    if not is_on_gpu():
        return None
    import jax
    import jax.numpy as jnp

    def to_rows(x: Tensor) -> Tensor:
        return jnp.swapaxes(x, 1, 2)

    arrays = to_rows(query), to_rows(key), to_rows(value)
    if offsets is not None and len(offsets.shape) == 1 and _takes(query):
        lengths = jnp.maximum(offsets, 1)
        return to_rows(
            jax.nn.dot_product_attention(
                *arrays, key_value_seq_lengths=lengths, implementation="cudnn"
            )
        )
    if offsets is not None and len(offsets.shape) == 2:
        # For its gradient the kernel keeps M numbers of float32 for each head and place. More than
        # D of them would need more memory than a mask.
        is_small = 1 < offsets.shape[1] - 1 <= query.shape[-1]
        if is_small and _takes(query, has_offsets=True):
            return to_rows(_attend_within_sequences(*arrays, offsets))
    if not _takes(query, has_mask=mask is not None, key=key):
        return None
    if mask is not None:
        mask = jnp.broadcast_to(mask, (*mask.shape[:2], query.shape[2], key.shape[2]))
    return to_rows(jax.nn.dot_product_attention(*arrays, mask=mask, implementation="cudnn"))


def _takes(
    query: Tensor, has_mask: bool = False, has_offsets: bool = False, key: Tensor | None = None
) -> bool:
    """Whether cuDNN takes queries and keys (B, heads, L, D) on this GPU, also in training.

    It takes bfloat16 and float16, heads of a multiple of 8 up to 128 features (Hopper: 256), with a
    mask an even L, and offsets on Hopper alone. JAX has the rules.
    """
    if str(query.dtype) not in ("bfloat16", "float16"):
        return False
    key = query if key is None else key
    try:
        cudnn = _import_cudnn()
        version = cudnn.check_cudnn_version()
        cudnn.check_is_flash_attention(
            *(query, key, key, cudnn.AttentionLayout.BNTH.value, version),
            has_bias=has_mask,
            is_training=True,
            is_packed=has_offsets,
        )
    # Another JAX; no cuDNN; a shape or a GPU that it does not take.
    except (ImportError, AttributeError, TypeError, RuntimeError, NotImplementedError):
        return False
    return cudnn.check_compute_capability("8.0") and not (has_offsets and version < OFFSETS_SINCE)


def _attend_within_sequences(query: Tensor, key: Tensor, value: Tensor, offsets: Tensor) -> Tensor:
    """Attention of every query to the keys of its own sequence, (R, W, heads, D)."""
    cudnn = _import_cudnn()
    lengths = measure_sequences(offsets, query.shape[1])
    return cudnn.dot_product_attention(
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


def _import_cudnn() -> Any:
    """JAX's private module, which alone takes offsets."""
    from jax._src.cudnn import fused_attention_stablehlo

    return fused_attention_stablehlo
