"""Sequence packing: several rows of a batch in one, so that nothing is computed on padding."""

from typing import Any, NamedTuple, Self

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor

#: The name of the argument of `call` that Keras hands on from layer to layer.
LAYOUT_ARGUMENT = "sequence_layout"


class SequenceLayout(NamedTuple):
    """Where the tokens of a batch (B, L) stand in packed rows (R, W).

    A packed row holds the tokens of several rows of the batch, one after the other. Tokens of
    different rows of the batch are hidden from each other.

    Attributes:
        tokens: int32 (R W,), b * L + l of the token at each place, and B * L where there is none.
        rows: int32 (R, W), b of the token at each place, and -1 where there is none.
        positions: int32 (R, W), l of the token at each place, and 0 where there is none.
        visible: bool (R, W, W), whether two places have tokens of the same row of the batch. Places
            without a token see each other, so that each place sees one.
    """

    tokens: Tensor
    rows: Tensor
    positions: Tensor
    visible: Tensor

    @classmethod
    def read(cls, layout: Tensor, padding_mask: Tensor) -> Self:
        """Reads the array `sequence_layout` of a batch.

        Args:
            layout: int32 (R, W), b * L + l of the token at each place, and -1 where there is none.
            padding_mask: int (..., L), of which the shape is read.
        """
        length = ops.shape(padding_mask)[-1]
        is_token = layout >= 0
        rows = ops.where(is_token, layout // length, -1)
        return cls(
            tokens=ops.reshape(ops.where(is_token, layout, ops.size(padding_mask)), (-1,)),
            rows=rows,
            positions=ops.where(is_token, layout % length, 0),
            visible=rows[:, :, None] == rows[:, None, :],
        )

    def pack(self, ids: Tensor) -> Tensor:
        """int (B, L) -> int (R, W), with 0 where there is no token."""
        flat = ops.pad(ops.reshape(ids, (-1,)), [[0, 1]])
        return ops.reshape(ops.take(flat, self.tokens), ops.shape(self.positions))

    def unpack(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """float (R, W, H) -> float (B, L, H), with 0 on padding.

        Args:
            hidden: float (R, W, H).
            padding_mask: int (B, L), of which the shape is read.
        """
        width = hidden.shape[-1]
        num_rows, length = ops.shape(padding_mask)
        # The places without a token are written to one more row, which is left out.
        flat = ops.scatter_update(
            ops.zeros((num_rows * length + 1, width), dtype=hidden.dtype),
            self.tokens[:, None],
            ops.reshape(hidden, (-1, width)),
        )
        return ops.reshape(flat[:-1], (num_rows, length, width))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class VisibleTokens(keras.layers.Layer):
    """The attention mask of a batch: its padding mask, or that of packed rows."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._register_call_context_args(LAYOUT_ARGUMENT)

    def call(self, padding_mask: Tensor, sequence_layout: SequenceLayout | None = None) -> Tensor:
        """int (B, L), which is `padding_mask`, or with a layout bool (R, W, W)."""
        return padding_mask if sequence_layout is None else sequence_layout.visible

    def compute_output_spec(self, padding_mask: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor(padding_mask.shape, dtype=padding_mask.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SequenceNumbers(keras.layers.Layer):
    """Numbers such that tokens of one sequence have the same number, and other places another."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._register_call_context_args(LAYOUT_ARGUMENT)

    def call(self, padding_mask: Tensor, sequence_layout: SequenceLayout | None = None) -> Tensor:
        """int (B, L), which is `padding_mask`, or with a layout int32 (R, W), its rows."""
        return padding_mask if sequence_layout is None else sequence_layout.rows

    def compute_output_spec(self, padding_mask: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor(padding_mask.shape, dtype=padding_mask.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenPositions(keras.layers.Layer):
    """The positions of tokens in the rows of a batch, also if these rows are packed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._register_call_context_args(LAYOUT_ARGUMENT)

    def call(self, hidden: Tensor, sequence_layout: SequenceLayout | None = None) -> Tensor:
        """float (B, L, H) -> int32 (1, L), from 0 on; with a layout int32 (R, W).

        Args:
            hidden: float (B, L, H), of which the length is read.
            sequence_layout: `SequenceLayout` or None.
        """
        if sequence_layout is not None:
            return sequence_layout.positions
        return ops.arange(ops.shape(hidden)[1], dtype="int32")[None]

    def compute_output_spec(self, hidden: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((None, hidden.shape[1]), dtype="int32")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class UnpackSequences(keras.layers.Layer):
    """Puts hidden states back from packed rows to the rows of the batch, if they are packed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._register_call_context_args(LAYOUT_ARGUMENT)

    def call(
        self, hidden: Tensor, padding_mask: Tensor, sequence_layout: SequenceLayout | None = None
    ) -> Tensor:
        """float (R, W, H) -> float (B, L, H); without a layout `hidden` itself.

        Args:
            hidden: float (R, W, H), or (B, L, H) without a layout.
            padding_mask: int (B, L).
            sequence_layout: `SequenceLayout` or None.
        """
        return hidden if sequence_layout is None else sequence_layout.unpack(hidden, padding_mask)

    def compute_output_shape(self, hidden_shape: Shape, *_: Shape) -> Shape:
        return hidden_shape


class PackedSequences:
    """A model whose inputs may come with a `sequence_layout`, int32 (R, W).

    The layout says which token of the batch (B, L) stands at each place of R rows of W places. The
    model then encodes these rows in place of those of the batch. Without dropout its outputs are
    the same, if the rows of the batch begin with a token. Hidden states of padding are 0.

    List it before `keras.Model` in the bases.
    """

    def call(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        mask: Tensor = None,
        **kwargs: Any,
    ) -> Any:
        """The outputs for packed arrays by name, and for `sequence_layout` if it is among them."""
        inputs, layout = _take_layout(inputs)
        if layout is not None:
            kwargs[LAYOUT_ARGUMENT] = SequenceLayout.read(layout, inputs["padding_mask"])
        return super().call(inputs, training=training, mask=mask, **kwargs)  # type: ignore[misc]

    def compute_output_spec(self, inputs: dict[str, Tensor], **kwargs: Any) -> Any:
        inputs, _ = _take_layout(inputs)
        return super().compute_output_spec(inputs, **kwargs)  # type: ignore[misc]


def _take_layout(inputs: Any) -> tuple[Any, Tensor | None]:
    """(inputs without a layout, the layout or None)."""
    if not isinstance(inputs, dict) or LAYOUT_ARGUMENT not in inputs:
        return inputs, None
    inputs = dict(inputs)
    layout = inputs.pop(LAYOUT_ARGUMENT)
    return inputs, layout
