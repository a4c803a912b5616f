"""Rotary positions, by which a product of a query and a key knows their distance; sinusoids."""

from keras import ops

from keras_bert_suite.annotations import Tensor


def count_positions(x: Tensor) -> Tensor:
    """int32 (1, L), the positions 0 to L - 1 of rows (B, L, ...) that are not packed."""
    return ops.arange(ops.shape(x)[1], dtype="int32")[None]


def rotate_positions(x: Tensor, base: float = 10000.0, positions: Tensor | None = None) -> Tensor:
    """Turns each vector by angles in proportion to its position: (B, L, ..., D), D even -> float32.

    The dimensions i and i + D/2 are a plane, which is turned by the angle
    position * base^(-2i / D). The paper pairs the dimensions 2i and 2i + 1; this is the same up to
    the order of the dimensions. `positions` are int32 (1, L) or (B, L); None for 0 to L - 1.

    Source: Su et al., 2021 (https://arxiv.org/abs/2104.09864), section 3.2.2.
    """
    dim = x.shape[-1]
    if positions is None:
        positions = count_positions(x)
    frequencies = base ** (-ops.arange(0, dim, 2, dtype="float32") / dim)
    angles = ops.cast(positions, "float32")[..., None] * frequencies
    angles = ops.reshape(angles, (*ops.shape(positions), *[1] * (len(x.shape) - 3), dim // 2))
    x = ops.cast(x, "float32")
    first, second = x[..., : dim // 2], x[..., dim // 2 :]
    cos, sin = ops.cos(angles), ops.sin(angles)
    return ops.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def rotate_pairs(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Turns each vector by angles in proportion to its position, as the paper writes it.

    The dimensions 2i and 2i + 1 of (B, heads, L, D), D even, are a plane, which is turned by the
    angle position * base^(-2i / D), in float32. `positions` are (1, L) or (B, L).

    Source: Su et al., 2021 (https://arxiv.org/abs/2104.09864), section 3.2.2.
    """
    dim = x.shape[-1]
    frequencies = base ** (-ops.arange(0, dim, 2, dtype="float32") / dim)
    angles = ops.cast(positions, "float32")[:, None, :, None] * frequencies
    cos, sin = ops.cos(angles), ops.sin(angles)
    pairs = ops.reshape(ops.cast(x, "float32"), (*ops.shape(x)[:-1], dim // 2, 2))
    even, odd = pairs[..., 0], pairs[..., 1]
    turned = ops.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1)
    return ops.cast(ops.reshape(turned, ops.shape(x)), x.dtype)


def compute_sinusoids(positions: Tensor, width: int) -> Tensor:
    """float32 (..., `width`), sines and cosines of positions of any shape, which may be negative.

    The sines are in the even columns, the cosines in the odd columns. The columns 2k and 2k + 1
    turn by the rate 10000^(-2k / `width`).

    Source: Vaswani et al., 2017 (https://arxiv.org/abs/1706.03762), section 3.5.
    """
    column = ops.arange(width, dtype="int32")
    rates = 10000.0 ** (-ops.cast(column // 2 * 2, "float32") / width)
    # OpenVINO makes 0 of a number that is indexed by [..., None].
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) * rates
    return ops.where(column % 2 == 0, ops.sin(angles), ops.cos(angles))
