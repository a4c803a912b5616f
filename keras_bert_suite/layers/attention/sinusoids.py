"""Sines and cosines of positions."""

from keras import ops

from keras_bert_suite.annotations import Tensor


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
