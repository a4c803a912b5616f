"""Attention of one new token to a source that is encoded already, and to the tokens before it."""

from typing import NamedTuple

from keras import ops

from keras_bert_suite.annotations import Tensor


class Source(NamedTuple):
    """The memory of an encoder layer for a batch of sources.

    Keys and values are float (B, heads, L, D), and `mask`, bool (B, L), the tokens to attend to.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor


def attend_to_source_and_targets(
    query: Tensor, source: Source, keys: Tensor, values: Tensor, mask: Tensor
) -> Tensor:
    """softmax(Q K^T / sqrt(D)) V over the tokens of a source and of several targets of this source.

    The softmax is in float32 whatever the compute dtype. The keys of a source are not copied for
    each of its targets.

    Args:
        query: float (B N, heads, 1, D), of the newest token of each of N targets of a source.
        source: `Source` of B sources.
        keys, values: float (B N, heads, T, D), of the tokens of the targets.
        mask: bool (T,), which tokens of the targets may be attended to.
    """
    _, heads, _, dim = query.shape
    query = query * dim**-0.5
    # (B, heads, N, D): the targets of a source are the queries of one product.
    queries = ops.swapaxes(ops.reshape(query, (ops.shape(source.keys)[0], -1, heads, dim)), 1, 2)
    source_scores = ops.cast(ops.matmul(queries, ops.swapaxes(source.keys, -1, -2)), "float32")
    source_scores = ops.where(source.mask[:, None, None, :], source_scores, -1e30)
    source_length = ops.shape(source.keys)[2]
    source_scores = ops.swapaxes(source_scores, 1, 2)
    source_scores = ops.reshape(source_scores, (-1, heads, 1, source_length))
    target_scores = ops.cast(ops.matmul(query, ops.swapaxes(keys, -1, -2)), "float32")
    target_scores = ops.where(mask, target_scores, -1e30)
    scores = ops.concatenate([source_scores, target_scores], axis=-1)
    probabilities = ops.cast(ops.softmax(scores, axis=-1), values.dtype)
    from_source, from_targets = (
        probabilities[..., :source_length],
        probabilities[..., source_length:],
    )
    from_source = ops.reshape(from_source, (ops.shape(source.keys)[0], -1, heads, source_length))
    context = ops.matmul(ops.swapaxes(from_source, 1, 2), source.values)
    context = ops.reshape(ops.swapaxes(context, 1, 2), (-1, heads, 1, dim))
    return context + ops.matmul(from_targets, values)
