"""Attention within a window around each token, in memory linear in the length of rows.

A token looks at the tokens of its own sequence that are at most `reach` positions away. The row is
cut into blocks of `reach` tokens. Then all keys of a block lie in the block and in its two
neighbours, so that each block is a small attention of its own. The result is that of the whole
formula with the mask `find_visible`.
"""

from collections.abc import Callable

from keras import ops

from keras_bert_suite.annotations import Tensor

#: The number of a sequence that no token has. It marks the padding of the last block.
_OUTSIDE = -2

#: A row of at most this many blocks is computed as a whole. A kernel with a mask is faster there.
_FEW_BLOCKS = 4


def attend_locally(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sequences: Tensor,
    positions: Tensor,
    reach: int,
    attend: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
) -> Tensor:
    """Attention of each token to the tokens of its sequence within a window.

    Args:
        query, key, value: float (B, heads, L, D).
        sequences: int (B, L) from -1 on, the number of the sequence of each token, such as a
            padding mask. Tokens with different numbers are hidden from each other.
        positions: int (1, L) or (B, L). Within a sequence they ascend.
        reach: int, how far a token looks to each side.
        attend: function of queries, keys, values and a bool mask that computes attention, with
            (N, heads, P, D) queries, (N, heads, K, D) keys and a mask (N, 1, P, K).

    Returns:
        float (B, heads, L, D).

    Source: Beltagy et al., 2020 (https://arxiv.org/abs/2004.05150), section 3.1. Their code reads
    the diagonals of two overlapping blocks, and this code three blocks.
    """
    if _has_few_blocks(query, reach):
        mask = find_visible(sequences, positions, sequences, positions, reach)
        return attend(query, key, value, mask[:, None])
    length = ops.shape(query)[2]
    positions = ops.broadcast_to(positions, ops.shape(sequences))
    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    mask = find_visible(
        cut_blocks(sequences, reach, _OUTSIDE),
        cut_blocks(positions, reach),
        gather_blocks(sequences, reach, _OUTSIDE),
        gather_blocks(positions, reach),
        reach,
    )
    query = ops.swapaxes(cut_blocks(query, reach), 1, 2)
    key, value = (ops.swapaxes(gather_blocks(x, reach), 1, 2) for x in (key, value))
    context = ops.swapaxes(attend(query, key, value, mask[:, None]), 1, 2)
    num_rows, (heads, width) = ops.shape(sequences)[0], context.shape[2:]
    # A row without a block has no size of its own to be found by -1.
    padded = length + -length % reach
    context = ops.reshape(context, (num_rows, padded, heads, width))
    return ops.swapaxes(context[:, :length], 1, 2)


def find_visible(
    query_sequences: Tensor,
    query_positions: Tensor,
    key_sequences: Tensor,
    key_positions: Tensor,
    reach: int,
) -> Tensor:
    """Which keys the queries may look at.

    Args:
        query_sequences, query_positions: int (B, P), numbers of sequences and positions.
        key_sequences, key_positions: int (B, K).
        reach: int, how far a token looks to each side.

    Returns:
        bool (B, P, K).
    """
    distances = query_positions[:, :, None] - key_positions[:, None, :]
    same = query_sequences[:, :, None] == key_sequences[:, None, :]
    return ops.logical_and(same, ops.abs(distances) <= reach)


def cut_blocks(x: Tensor, size: int, fill: int = 0) -> Tensor:
    """(B, L, ...) -> (B N, size, ...), the N blocks of each row. The last is filled up."""
    x = _pad(x, 0, -ops.shape(x)[1] % size, fill)
    return ops.reshape(x, (-1, size, *x.shape[2:]))


def gather_blocks(x: Tensor, size: int, fill: int = 0) -> Tensor:
    """(B, L, ...) -> (B N, 3 size, ...), each block between its two neighbours."""
    num_rows, length = ops.shape(x)[0], ops.shape(x)[1]
    num_blocks = (length + -length % size) // size
    x = _pad(x, size, size + -length % size, fill)
    x = ops.reshape(x, (num_rows, num_blocks + 2, size, *x.shape[2:]))
    x = ops.concatenate([x[:, :-2], x[:, 1:-1], x[:, 2:]], axis=2)
    return ops.reshape(x, (-1, 3 * size, *x.shape[3:]))


def _pad(x: Tensor, before: int, after: Tensor | int, fill: int) -> Tensor:
    return ops.pad(x, [[0, 0], [before, after], *[[0, 0]] * (len(x.shape) - 2)], "constant", fill)


def _has_few_blocks(x: Tensor, reach: int) -> bool:
    length = x.shape[2]
    return isinstance(length, int) and length <= _FEW_BLOCKS * reach
