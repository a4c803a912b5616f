"""Attention within a window around each token, in memory linear in the length of rows.

A token attends to the tokens of its sequence at most `reach` positions away. The row is cut into
blocks of `reach` tokens. Then all keys of a block lie in the block and in its two neighbours, so
that each block is a small attention. The result equals the whole formula with the mask
`find_visible`. All tokens of a row also attend to its shared keys, if it has some. They stand
before the keys of each block.
"""

from collections.abc import Callable
from typing import NamedTuple

from keras import ops

from keras_bert_suite.annotations import Tensor

#: The number of a sequence that no token has. It marks the padding of the last block.
_OUTSIDE = -2

#: A row of at most this many blocks is computed as a whole. A kernel with a mask is faster there.
_FEW_BLOCKS = 4


class SharedKeys(NamedTuple):
    """Keys that all tokens of a row attend to, wherever the tokens are.

    Attributes:
        key, value: float (B, heads, G, D).
        visible: bool (B, G), false where a row has fewer such keys.
        sequences: int (B, L), as the argument of `attend_locally`, with a number that no token has
            where a key is among the shared ones. So the window does not have it a second time.
    """

    key: Tensor
    value: Tensor
    visible: Tensor
    sequences: Tensor


def attend_locally(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sequences: Tensor,
    positions: Tensor,
    reach: int,
    attend: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
    shared: SharedKeys | None = None,
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
        shared: `SharedKeys`, or None.

    Returns:
        float (B, heads, L, D).

    Source: Beltagy et al., 2020 (https://arxiv.org/abs/2004.05150), section 3.1. Their code reads
    the diagonals of two overlapping blocks, and this code three blocks.
    """
    key_sequences = sequences if shared is None else shared.sequences
    if _has_few_blocks(query, reach):
        mask = find_visible(sequences, positions, key_sequences, positions, reach)
        if shared is not None:
            key, value, mask = _put_first(shared, key, value, mask)
        return attend(query, key, value, mask[:, None])
    length = ops.shape(query)[2]
    positions = ops.broadcast_to(positions, ops.shape(sequences))
    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    mask = find_visible(
        cut_blocks(sequences, reach, _OUTSIDE),
        cut_blocks(positions, reach),
        gather_blocks(key_sequences, reach, _OUTSIDE),
        gather_blocks(positions, reach),
        reach,
    )
    query = ops.swapaxes(cut_blocks(query, reach), 1, 2)
    key, value = (ops.swapaxes(gather_blocks(x, reach), 1, 2) for x in (key, value))
    if shared is not None:
        num_blocks = (length + -length % reach) // reach
        repeated = SharedKeys(*(_repeat_rows(x, num_blocks) for x in shared))
        key, value, mask = _put_first(repeated, key, value, mask)
    context = ops.swapaxes(attend(query, key, value, mask[:, None]), 1, 2)
    num_rows, (heads, width) = ops.shape(sequences)[0], context.shape[2:]
    # The size -1 cannot be inferred for a row without a block.
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
    """Which keys (B, K) the queries (B, P) may attend to within `reach`: bool (B, P, K).

    Numbers of sequences and positions are int.
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


def _put_first(
    shared: SharedKeys, key: Tensor, value: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values (N, heads, G + K, D) and mask (N, P, G + K), with the shared keys first."""
    num_shared = shared.key.shape[2]
    visible = ops.broadcast_to(
        shared.visible[:, None, :], (ops.shape(mask)[0], ops.shape(mask)[1], num_shared)
    )
    return (
        ops.concatenate([shared.key, key], axis=2),
        ops.concatenate([shared.value, value], axis=2),
        ops.concatenate([visible, mask], axis=2),
    )


def _repeat_rows(x: Tensor, times: Tensor | int) -> Tensor:
    """(B, ...) -> (B N, ...), each row N times."""
    inner = ops.shape(x)[1:]
    x = ops.broadcast_to(x[:, None], (ops.shape(x)[0], times, *inner))
    return ops.reshape(x, (-1, *inner))


def _pad(x: Tensor, before: int, after: Tensor | int, fill: int) -> Tensor:
    return ops.pad(x, [[0, 0], [before, after], *[[0, 0]] * (len(x.shape) - 2)], "constant", fill)


def _has_few_blocks(x: Tensor, reach: int) -> bool:
    length = x.shape[2]
    return isinstance(length, int) and length <= _FEW_BLOCKS * reach
