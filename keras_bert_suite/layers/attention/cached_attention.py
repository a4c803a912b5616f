"""Attention of one new token to a source that is encoded already, and to the tokens before it."""

from typing import NamedTuple

from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.attention_kernels import NEVER, normalize_scores
from keras_bert_suite.layers.eager_pass import tensor_functions, to_float32


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
    xp = tensor_functions()
    _, heads, _, dim = query.shape
    num_sources, source_length = ops.shape(source.keys)[0], ops.shape(source.keys)[2]
    query = query * dim**-0.5
    # (B, heads, N, D): the targets of a source are the queries of one product.
    queries = xp.swapaxes(xp.reshape(query, (num_sources, -1, heads, dim)), 1, 2)
    source_scores = to_float32(xp.matmul(queries, xp.swapaxes(source.keys, -1, -2)))
    source_scores = xp.where(source.mask[:, None, None, :], source_scores, NEVER)
    source_scores = xp.swapaxes(source_scores, 1, 2)
    source_scores = xp.reshape(source_scores, (-1, heads, 1, source_length))
    target_scores = to_float32(xp.matmul(query, xp.swapaxes(keys, -1, -2)))
    target_scores = xp.where(mask, target_scores, NEVER)
    scores = xp.concatenate([source_scores, target_scores], axis=-1)
    probabilities = normalize_scores(scores)
    if probabilities.dtype != values.dtype:
        probabilities = ops.cast(probabilities, values.dtype)
    from_source, from_targets = (
        probabilities[..., :source_length],
        probabilities[..., source_length:],
    )
    from_source = xp.reshape(from_source, (num_sources, -1, heads, source_length))
    context = xp.matmul(xp.swapaxes(from_source, 1, 2), source.values)
    context = xp.reshape(xp.swapaxes(context, 1, 2), (-1, heads, 1, dim))
    return context + xp.matmul(from_targets, values)
