"""The tokens of a row that a head reads, taken before the last layer of an encoder.

The last layer then computes the keys and values of all tokens, and the rest of its work for these
tokens alone. Packed rows are computed whole, and the tokens are taken from the unpacked rows.
"""

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.sequence_layout import Layout
from keras_bert_suite.layers.companions import CompanionReader
from keras_bert_suite.layers.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReadTokens(CompanionReader, ConfiguredLayer):
    """Takes the tokens that a head reads, unless the rows are packed."""

    def call(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        sequence_layout: Layout | None = None,
    ) -> Tensor:
        """(B, L, H) -> (B, Q, H), or with packed rows `x` itself.

        Args:
            x: float (B, L, H), or int (1, L), with a number for each position.
            positions: int32 (B, Q), the tokens that are read; None for the first token of each row.
            sequence_layout: `SequenceLayout`, `BucketedLayout` or None.
        """
        return x if sequence_layout is not None else take_tokens(x, positions)

    def compute_output_spec(self, x: Tensor, positions: Tensor | None = None) -> keras.KerasTensor:
        taken = (x.shape[0], 1) if positions is None else positions.shape
        return keras.KerasTensor((*taken, *x.shape[2:]), dtype=x.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReadPackedTokens(CompanionReader, ConfiguredLayer):
    """Takes the tokens that a head reads from packed rows. Of other rows they are taken before."""

    def call(
        self,
        hidden: Tensor,
        padding_mask: Tensor,
        positions: Tensor | None = None,
        sequence_layout: Layout | None = None,
    ) -> Tensor:
        """float (R, W, H) or (1, N, H) -> (B, Q, H); without a layout `hidden` itself.

        Args:
            hidden: float (R, W, H), with buckets (1, N, H), or (B, Q, H) without a layout.
            padding_mask: int (B, L), of which the shape is read.
            positions: as for `ReadTokens.call`.
            sequence_layout: `SequenceLayout`, `BucketedLayout` or None.
        """
        if sequence_layout is None:
            return hidden
        return take_tokens(sequence_layout.unpack(hidden, padding_mask), positions)

    def compute_output_spec(
        self, hidden: Tensor, padding_mask: Tensor, positions: Tensor | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor(hidden.shape, dtype=hidden.dtype)


def take_tokens(x: Tensor, positions: Tensor | None) -> Tensor:
    """(B, L, H) or (1, L) -> (B, Q, H) or (B, Q), the first token or the tokens at int (B, Q)."""
    if positions is None:
        return x[:, :1]
    if len(x.shape) == 2:
        return ops.take(x[0], positions, axis=0)
    return ops.take_along_axis(x, positions[:, :, None], axis=1)
