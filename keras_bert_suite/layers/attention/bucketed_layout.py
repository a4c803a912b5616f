"""Sequence packing in buckets of packed rows, each bucket as wide as its rows."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, Self

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor


@dataclasses.dataclass(frozen=True)
class BucketedLayout:
    """Where the tokens of a batch (B, L) stand in buckets of packed rows.

    Bucket k has R_k packed rows of W_k places. A packed row holds the tokens of one or several rows
    of the batch, one row after the other. Tokens of different rows of the batch are hidden from
    each other. Hidden states are float (1, N, H): the places of all buckets, row after row. So
    layers that work on each token by itself do not see buckets, and attention needs no copy to find
    the rows of a bucket.

    Attributes:
        tokens: int32 (N,), b * L + l of the token at each place, and B * L where there is none.
        positions: int32 (1, N), l of the token at each place, and 0 where there is none.
        bucket_positions: tuple of int32 (R_k, W_k), the same for each bucket.
        rows: tuple of int32 (R_k, W_k), b of the token at each place, and -1 where there is none.
        visible: tuple of bool (R_k, W_k, W_k), whether two places have tokens of the same row of
            the batch. Places without a token see each other, so that each place sees one.
    """

    tokens: Tensor
    positions: Tensor
    bucket_positions: tuple[Tensor, ...]
    rows: tuple[Tensor, ...]
    visible: tuple[Tensor, ...]

    @classmethod
    def read(cls, buckets: Sequence[Tensor], padding_mask: Tensor) -> Self:
        """Reads the `sequence_layout` of a batch.

        Buckets, int32 (R_k, W_k), have b * L + l of the token at each place, and -1 where there is
        none. Buckets without a place are left out, unless the shape is not known. Of `padding_mask`
        (..., L) the shape is read.
        """
        buckets = [bucket for bucket in buckets if 0 not in bucket.shape]
        length = ops.shape(padding_mask)[-1]
        rows = tuple(ops.where(bucket >= 0, bucket // length, -1) for bucket in buckets)
        places = ops.concatenate([ops.reshape(bucket, (-1,)) for bucket in buckets])
        is_token = places >= 0
        return cls(
            tokens=ops.where(is_token, places, ops.size(padding_mask)),
            positions=ops.where(is_token, places % length, 0)[None, :],
            bucket_positions=tuple(
                ops.where(bucket >= 0, bucket % length, 0) for bucket in buckets
            ),
            rows=rows,
            visible=tuple(r[:, :, None] == r[:, None, :] for r in rows),
        )

    def pack(self, x: Tensor) -> Tensor:
        """int or float (B, L, ...) -> (1, N, ...), with 0 where there is no token."""
        return pack_tokens(x, self.tokens)[None]

    def unpack(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """float (1, N, H) -> float (B, L, H), with 0 on padding."""
        return unpack_tokens(hidden, self.tokens, padding_mask)

    def split_buckets(self, hidden: Tensor) -> list[Tensor]:
        """float (1, N, H) -> list of float (R_k, W_k, H)."""
        shapes = [ops.shape(rows) for rows in self.rows]
        parts = _split_rows(hidden[0], [rows * width for rows, width in shapes])
        return [
            ops.reshape(part, (*shape, hidden.shape[-1]))
            for part, shape in zip(parts, shapes, strict=True)
        ]

    def join_buckets(self, buckets: Sequence[Tensor]) -> Tensor:
        """List of float (R_k, W_k, H) -> float (1, N, H)."""
        return ops.concatenate([ops.reshape(states, (-1, states.shape[-1])) for states in buckets])[
            None
        ]


def pack_tokens(x: Tensor, tokens: Tensor) -> Tensor:
    """Takes ids or hidden states (B, L, ...) of a batch to the places of packed rows: (N, ...).

    `tokens`, int32 (N,), has b * L + l of the token at each place, and B * L where there is none.
    There the result is 0.
    """
    inner = x.shape[2:]
    flat = ops.pad(ops.reshape(x, (-1, *inner)), [[0, 1], *[[0, 0]] * len(inner)])
    return ops.take(flat, tokens, axis=0)


def unpack_tokens(hidden: Tensor, tokens: Tensor, padding_mask: Tensor) -> Tensor:
    """Puts hidden states back to the rows of the batch: (..., H), N places in all, -> (B, L, H).

    `tokens` is as for `pack_tokens`. Of `padding_mask` (B, L) the shape is read. The result is 0 on
    padding.
    """
    width = hidden.shape[-1]
    num_rows, length = ops.shape(padding_mask)
    # The places without a token are written to one more row, which is left out.
    flat = ops.scatter_update(
        ops.zeros((num_rows * length + 1, width), dtype=hidden.dtype),
        tokens[:, None],
        ops.reshape(hidden, (-1, width)),
    )
    return ops.reshape(flat[:-1], (num_rows, length, width))


def _split_rows(x: Tensor, sizes: list[Any]) -> Sequence[Tensor]:
    """Cuts (N, H) into arrays of `sizes` rows.

    The gradient joins the gradients of the parts. Under TensorFlow and PyTorch the gradient of a
    slice, or of `ops.split`, would fill an array (N, H) for each part.
    """
    backend = keras.config.backend()
    if backend == "torch":
        return x.split(sizes)
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.split(x, sizes, num=len(sizes))
    return ops.split(x, list(itertools.accumulate(sizes[:-1])))
