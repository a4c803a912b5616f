"""cuDNN's attention under JAX, with lengths of rows instead of padding masks.

All queries, keys and values are (B, heads, L, D), in bfloat16 or float16.

The kernel can drop probabilities too, but JAX writes the seed of the dropout into the compiled
program, and the program counts its runs from 0. So a training that is resumed would draw other
numbers than a training that was not interrupted, and a block that is computed a second time for its
gradient would draw other numbers than the first time. Therefore nothing here drops.

Source: jax-ml/jax#25812 (https://github.com/jax-ml/jax/pull/25812).
"""

from keras_bert_suite.annotations import Tensor


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor | None:
    """Attention by cuDNN, or None if it does not take the case.

    cuDNN takes the number of keys of a row, and the padding may stand anywhere. The sum over the
    keys has no order, so keys and values of padding are moved behind the others. A row without
    keys sees one of them.

    Args:
        query, key, value: (B, heads, L, D), or of packed rows (R, heads, W, D).
        mask: bool, broadcastable to (B, heads, L, L), or None. Other masks than of padding,
            (B, 1, 1, L), become a bias whose last two axes are L. Axes of batch and heads may stay
            1.

    Returns:
        (B, heads, L, D), or None.
    """
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != "gpu":
        return None
    lengths = None
    if mask is not None and mask.shape == (query.shape[0], 1, 1, key.shape[2]):
        order = jnp.argsort(~mask[:, 0, 0])[:, None, :, None]
        lengths = jnp.maximum(jnp.sum(mask[:, 0, 0], axis=1, dtype="int32"), 1)
        mask = None
    if not _takes(query, key, has_mask=mask is not None):
        return None
    if lengths is not None:
        key, value = (jnp.take_along_axis(x, order, axis=2) for x in (key, value))
    if mask is not None:
        mask = jnp.broadcast_to(mask, (*mask.shape[:2], query.shape[2], key.shape[2]))
    context = jax.nn.dot_product_attention(
        *(jnp.swapaxes(x, 1, 2) for x in (query, key, value)),
        mask=mask,
        key_value_seq_lengths=lengths,
        implementation="cudnn",
    )
    return jnp.swapaxes(context, 1, 2)


def _takes(query: Tensor, key: Tensor, has_mask: bool) -> bool:
    """Whether cuDNN takes queries and keys (B, heads, L, D) on this GPU, also in training.

    It takes bfloat16 and float16, heads of a multiple of 8 up to 128 features (Hopper: 256), and
    with a mask an even L. JAX has the rules.
    """
    if str(query.dtype) not in ("bfloat16", "float16"):
        return False
    try:
        from jax._src.cudnn import fused_attention_stablehlo as cudnn

        cudnn.check_is_flash_attention(
            *(query, key, key, cudnn.AttentionLayout.BNTH.value, cudnn.check_cudnn_version()),
            has_bias=has_mask,
            is_training=True,
        )
        return cudnn.check_compute_capability("8.0")
    # Another JAX; no cuDNN; a shape or a GPU that it does not take.
    except (ImportError, AttributeError, TypeError, RuntimeError, NotImplementedError):
        return False
