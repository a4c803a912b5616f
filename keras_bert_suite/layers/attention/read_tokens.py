"""The tokens of a row that a head reads, taken before the last layer of an encoder.

The last layer then computes the keys and values of all tokens, and the rest of its work for these
tokens alone. Packed rows are computed whole, and the tokens are taken from the unpacked rows.

Behind P prompts, token i stands at the place P + i, and the first prompt stands for the row.
"""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.adapters.prompt_vectors import find_prompt_length, make_room
from keras_bert_suite.layers.attention.sequence_layout import Layout
from keras_bert_suite.layers.companions import CompanionReader
from keras_bert_suite.layers.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReadTokens(CompanionReader, ConfiguredLayer):
    """Takes the tokens that a head reads, unless the rows are packed.

    Args:
        starts_with_row: bool, whether the first of the positions, 0, is of what stands for the row.
    """

    def __init__(self, starts_with_row: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.starts_with_row = starts_with_row

    def call(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        sequence_layout: Layout | None = None,
    ) -> Tensor:
        """(B, L, H) -> (B, Q, H), or with packed rows `x` itself.

        Args:
            x: float (B, L, H), or int (1, L), with a number for each position.
            positions: int32 (B, Q), the tokens that are read; None for the first place of each row.
            sequence_layout: `SequenceLayout`, `BucketedLayout` or None.
        """
        if sequence_layout is not None:
            return x
        return take_tokens(x, find_places(positions, self.starts_with_row))

    def compute_output_spec(self, x: Tensor, positions: Tensor | None = None) -> keras.KerasTensor:
        taken = (x.shape[0], 1) if positions is None else positions.shape
        return keras.KerasTensor((*taken, *x.shape[2:]), dtype=x.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReadPackedTokens(CompanionReader, ConfiguredLayer):
    """Takes the tokens that a head reads from packed rows. Of other rows they are taken before.

    `starts_with_row` is as for `ReadTokens`.
    """

    def __init__(self, starts_with_row: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.starts_with_row = starts_with_row

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
        states = sequence_layout.unpack(hidden, make_room(padding_mask, 1))
        return take_tokens(states, find_places(positions, self.starts_with_row))

    def compute_output_spec(
        self, hidden: Tensor, padding_mask: Tensor, positions: Tensor | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor(hidden.shape, dtype=hidden.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReadFirst(CompanionReader, ConfiguredLayer):
    """Takes the state at the first place of each row: that of its first token, or prompt."""

    def call(
        self,
        hidden: Tensor,
        unpacked: Tensor,
        padding_mask: Tensor,
        sequence_layout: Layout | None = None,
    ) -> Tensor:
        """float (B, H).

        Args:
            hidden: float (B, P + L, H), or (R, W, H) or (1, N, H) with a layout.
            unpacked: float (B, L, H), the same without the states of prompts.
            padding_mask: int (B, L), of which the shape is read.
            sequence_layout: `SequenceLayout`, `BucketedLayout` or None.
        """
        if not find_prompt_length():
            return unpacked[:, 0]
        if sequence_layout is not None:
            hidden = sequence_layout.unpack(hidden, make_room(padding_mask, 1))
        return hidden[:, 0]

    def compute_output_spec(
        self, hidden: Tensor, unpacked: Tensor, padding_mask: Tensor
    ) -> keras.KerasTensor:
        return keras.KerasTensor((unpacked.shape[0], unpacked.shape[2]), dtype=unpacked.dtype)


def find_places(positions: Tensor | None, starts_with_row: bool) -> Tensor | None:
    """The places of tokens behind the prompts of their rows: int32 (B, Q) or None, as given."""
    prompts = find_prompt_length()
    if positions is None or not prompts:
        return positions
    if starts_with_row:
        return ops.pad(positions[:, 1:] + prompts, [[0, 0], [1, 0]])
    return positions + prompts


def take_tokens(x: Tensor, positions: Tensor | None) -> Tensor:
    """(B, L, H) or (1, L) -> (B, Q, H) or (B, Q), the first token or the tokens at int (B, Q)."""
    if positions is None:
        return x[:, :1]
    if len(x.shape) == 2:
        return ops.take(x[0], positions, axis=0)
    return ops.take_along_axis(x, positions[:, :, None], axis=1)
