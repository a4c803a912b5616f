"""cuDNN's attention under JAX, with lengths of rows instead of padding masks.

All queries, keys and values are (B, heads, L, D), in bfloat16 or float16.

The kernel can drop probabilities too, but JAX writes the seed of the dropout into the compiled
program, and the program counts its runs from 0. So a training that is resumed would draw other
numbers than a training that was not interrupted, and a block that is computed a second time for its
gradient would draw other numbers than the first time. Therefore nothing here drops.

Source: jax-ml/jax#25812 (https://github.com/jax-ml/jax/pull/25812).
"""

from keras_bert_suite.annotations import Tensor

#: The fewest keys of a row for which the kernel is called. On an H200 it took 1.1 times the time of
#: XLA's formula for 128 keys, and half of it for 512 (benchmarks/results/gpu.md).
FEWEST_KEYS = 256


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor | None:
    """Attention by cuDNN; None if cuDNN does not take these arguments, or would be slower.

    cuDNN reads the first keys of a row, and takes their number. Padding may stand anywhere in a
    row, so its keys and values are moved behind the others. This changes no result, because the
    order of the keys does not matter. A row of padding alone sees one key. `mask` says which keys
    are no padding, bool (B, 1, 1, L), or None for all.
    """
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != "gpu" or key.shape[2] < FEWEST_KEYS or not _takes(query, key):
        return None
    lengths = None
    if mask is not None:
        if mask.shape != (query.shape[0], 1, 1, key.shape[2]):
            return None
        order = jnp.argsort(~mask[:, 0, 0])[:, None, :, None]
        lengths = jnp.maximum(jnp.sum(mask[:, 0, 0], axis=1, dtype="int32"), 1)
        key, value = (jnp.take_along_axis(x, order, axis=2) for x in (key, value))
    context = jax.nn.dot_product_attention(
        *(jnp.swapaxes(x, 1, 2) for x in (query, key, value)),
        key_value_seq_lengths=lengths,
        implementation="cudnn",
    )
    return jnp.swapaxes(context, 1, 2)


def _takes(query: Tensor, key: Tensor) -> bool:
    """Whether cuDNN takes queries and keys (B, heads, L, D) on this GPU, also in training.

    It takes bfloat16 and float16, and heads of a multiple of 8 up to 128 features (Hopper: 256).
    JAX has the rules.
    """
    if str(query.dtype) not in ("bfloat16", "float16"):
        return False
    try:
        from jax._src.cudnn import fused_attention_stablehlo as cudnn

        cudnn.check_is_flash_attention(
            *(query, key, key, cudnn.AttentionLayout.BNTH.value, cudnn.check_cudnn_version()),
            has_bias=False,
            is_training=True,
        )
        return cudnn.check_compute_capability("8.0")
    # Another JAX; no cuDNN; a shape or a GPU that it does not take.
    except (ImportError, AttributeError, TypeError, RuntimeError, NotImplementedError):
        return False
