"""Sequence packing: several rows of a batch in one, so that nothing is computed on padding."""

from collections.abc import Container
from typing import Any, NamedTuple, Self

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.layers.adapters.adaptable import act_in
from keras_bert_suite.layers.adapters.prompt_vectors import find_prompt_length, make_room
from keras_bert_suite.layers.attention.attention_patterns import ATTENTION_PATTERNS, mask_by_ranks
from keras_bert_suite.layers.attention.bucketed_layout import (
    BucketedLayout,
    pack_tokens,
    unpack_tokens,
)
from keras_bert_suite.layers.attention.rotary_positions import count_positions
from keras_bert_suite.layers.companions import (
    COMPANIONS,
    LAYOUT_ARGUMENT,
    CompanionReader,
    find_companions,
    hand_on,
)
from keras_bert_suite.layers.configured_layer import ConfiguredLayer, ShapeKeepingLayer
from keras_bert_suite.layers.eager_pass import eager_pass
from keras_bert_suite.layers.graph_calls import find_plain_inputs, run_graph


class SequenceLayout(NamedTuple):
    """Where the tokens of a batch (B, L) stand in packed rows (R, W).

    A packed row holds the tokens of several rows of the batch, one after the other. Tokens of
    different rows of the batch are hidden from each other.

    Several devices may share the batch. Then the rows of each share stand in packed rows of their
    own, and the shares have equally many packed rows, together R.

    Attributes:
        tokens: int32 (R W,), b * L + l of the token at each place, and B * L where there is none.
            With S shares int32 (S, R W / S), where b counts the B / S rows of the share, so that
            no device needs the tokens of another.
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
        """Reads the array `sequence_layout` of a batch, int32 (R, W), with shares (S, R / S, W).

        It has b * L + l of the token at each place, and -1 where there is none. The tokens of a row
        of the batch are neighbours. Of `padding_mask` (..., L) the shape is read.
        """
        length = ops.shape(padding_mask)[-1]
        tokens = _find_tokens(layout, padding_mask)
        layout = ops.reshape(layout, (-1, layout.shape[-1])) if len(layout.shape) > 2 else layout
        is_token = layout >= 0
        rows = ops.where(is_token, layout // length, -1)
        return cls(
            tokens=tokens,
            rows=rows,
            positions=ops.where(is_token, layout % length, 0),
            visible=rows[:, :, None] == rows[:, None, :],
        )

    def pack(self, x: Tensor) -> Tensor:
        """int or float (B, L, ...) -> (R, W, ...), with 0 where there is no token."""
        if len(self.tokens.shape) == 1:
            packed = pack_tokens(x, self.tokens)
        else:
            packed = ops.vectorized_map(
                lambda share: pack_tokens(*share), (self._split(x), self.tokens)
            )
        return ops.reshape(packed, (*ops.shape(self.positions), *x.shape[2:]))

    def unpack(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """float (R, W, H) -> float (B, L, H), with 0 on padding."""
        if len(self.tokens.shape) == 1:
            return unpack_tokens(hidden, self.tokens, padding_mask)
        unpacked = ops.vectorized_map(
            lambda share: unpack_tokens(*share),
            (self._split(hidden), self.tokens, self._split(padding_mask)),
        )
        return ops.reshape(unpacked, (*padding_mask.shape, hidden.shape[-1]))

    def _split(self, x: Tensor) -> Tensor:
        """(N, ...) -> (S, N / S, ...)."""
        return ops.reshape(x, (self.tokens.shape[0], -1, *x.shape[1:]))


def _find_tokens(layout: Tensor, padding_mask: Tensor) -> Tensor:
    """The `tokens` of a `SequenceLayout`, from the array that `SequenceLayout.read` takes."""
    if len(layout.shape) > 2:
        num_shares = layout.shape[0]
        size = ops.size(padding_mask) // num_shares
        first = ops.arange(num_shares, dtype="int32")[:, None, None] * size
        return ops.reshape(ops.where(layout >= 0, layout - first, size), (num_shares, -1))
    return ops.reshape(ops.where(layout >= 0, layout, ops.size(padding_mask)), (-1,))


#: What says where the tokens of a batch stand in packed rows.
Layout = SequenceLayout | BucketedLayout


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class VisibleTokens(CompanionReader, ConfiguredLayer):
    """The attention mask of a batch, by its padding or its packed rows, and by a pattern.

    `pattern` is one of `ATTENTION_PATTERNS`.
    """

    def __init__(self, pattern: str = "bidirectional", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_choice("attention_pattern", pattern, ATTENTION_PATTERNS)
        self.pattern = pattern

    def call(
        self,
        padding_mask: Tensor,
        ranked_by: Tensor | None = None,
        sequence_layout: Layout | None = None,
    ) -> Tensor | BucketedLayout:
        """The mask of a batch.

        `ranked_by`, int (B, L), is the array that a pattern of `ARRAYS_READ` reads. Only
        "bidirectional" takes buckets. With buckets another pattern is a ValueError.

        Returns:
            int (B, L), which is `padding_mask`, where every token may attend to every token. With
            another pattern bool (B, L, L), with a layout bool (R, W, W), and with buckets their
            layout. P prompts make L + P places of L.
        """
        rank = ATTENTION_PATTERNS[self.pattern]
        padding_mask = make_room(padding_mask, 1)
        ranked_by = padding_mask if ranked_by is None else make_room(ranked_by)
        if isinstance(sequence_layout, BucketedLayout):
            if rank is not None:
                raise ValueError(
                    f"Attention with the pattern {self.pattern!r} takes no buckets of packed rows. "
                    "Lay the rows out with `lay_out_sequences`."
                )
            return sequence_layout
        if rank is None:
            return padding_mask if sequence_layout is None else sequence_layout.visible
        if sequence_layout is None:
            return mask_by_ranks(rank(ranked_by)) & (padding_mask != 0)[:, None, :]
        # The ranks of packed rows rise from sequence to sequence. This does not matter, because
        # tokens are compared within a sequence only.
        return mask_by_ranks(rank(sequence_layout.pack(ranked_by))) & sequence_layout.visible

    def compute_output_spec(
        self, padding_mask: Tensor, ranked_by: Tensor | None = None
    ) -> keras.KerasTensor:
        if ATTENTION_PATTERNS[self.pattern] is None:
            return keras.KerasTensor(padding_mask.shape, dtype=padding_mask.dtype)
        return keras.KerasTensor((*padding_mask.shape, padding_mask.shape[1]), dtype="bool")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenPositions(CompanionReader, ConfiguredLayer):
    """The positions of tokens in the rows of a batch, also if these rows are packed."""

    def call(self, hidden: Tensor, sequence_layout: Layout | None = None) -> Tensor:
        """float (B, L, H) -> int32 (1, L), from 0 on; with a layout int32 (R, W) or (1, N)."""
        if sequence_layout is not None:
            return sequence_layout.positions
        return count_positions(hidden)

    def compute_output_spec(self, hidden: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((None, hidden.shape[1]), dtype="int32")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SequenceNumbers(CompanionReader, ConfiguredLayer):
    """Numbers such that tokens of one sequence have the same number, and other places another."""

    def call(self, padding_mask: Tensor, sequence_layout: SequenceLayout | None = None) -> Tensor:
        """int (B, L), which is `padding_mask`, or with a layout int32 (R, W), its rows."""
        padding_mask = make_room(padding_mask, 1)
        return padding_mask if sequence_layout is None else sequence_layout.rows

    def compute_output_spec(self, padding_mask: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor(padding_mask.shape, dtype=padding_mask.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class UnpackSequences(CompanionReader, ShapeKeepingLayer):
    """Puts hidden states back from packed rows to the rows of the batch, if they are packed.

    The states of prompts are left out.
    """

    def call(
        self, hidden: Tensor, padding_mask: Tensor, sequence_layout: Layout | None = None
    ) -> Tensor:
        """float (R, W, H) or (1, N, H) -> (B, L, H); without a layout `hidden` itself."""
        if sequence_layout is not None:
            hidden = sequence_layout.unpack(hidden, make_room(padding_mask, 1))
        prompts = find_prompt_length()
        return hidden[:, prompts:] if prompts else hidden


class PackedSequences:
    """A model whose inputs may come with a `sequence_layout`, int32 (R, W) or a tuple of them.

    Where several devices share the batch, it may be (S, R, W), see `lay_out_sequences`.

    The layout says which token of the batch (B, L) stands at each place of R rows of W places, or
    of the rows of several buckets. The model then encodes these rows instead of the batch. Without
    dropout its outputs are the same, if the rows of the batch begin with a token. Hidden states of
    padding are 0.

    A `global_attention_mask`, int (..., L), marks global tokens for a model that has such tokens,
    see `GlobalTokens`. Other models leave it out. An `embedding_shift`, float (..., L, E), is added
    to the embeddings of the tokens, see `BertEmbeddings`. A `prompt_length`, int (B,), is how many
    tokens at the beginning of each row a `PromptlessPooling` leaves out.

    List it before `keras.Model` in the bases.
    """

    def takes_buckets(self) -> bool:
        """Whether the attention of this model takes buckets of packed rows."""
        return False

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None, mask: Tensor = None
    ) -> Any:
        """The outputs for packed arrays by name.

        `sequence_layout` and the other `COMPANIONS` may be among them. Other
        arrays that the model does not take, such as `segment_ids` of a packer, are left out. Keras
        would take them for others of the same shape.
        """
        with act_in(self, training), eager_pass(self, training):
            return self._call(inputs, training, mask)

    def _call(self, inputs: dict[str, Tensor], training: Any, mask: Tensor) -> Any:
        inputs, companions = _split_companions(inputs, self.input)  # type: ignore[attr-defined]
        if not (companions or find_companions()):
            tensors = find_plain_inputs(self, inputs, training, mask)
            if tensors is not None:
                return run_graph(self, tensors, bool(training))
        layout = companions.get(LAYOUT_ARGUMENT)
        if layout is not None:
            kind = BucketedLayout if isinstance(layout, (list, tuple)) else SequenceLayout
            places = make_room(inputs["padding_mask"], 1, axis=-1)
            companions[LAYOUT_ARGUMENT] = kind.read(layout, places)
        with hand_on(companions):
            return super().call(inputs, training=training, mask=mask)  # type: ignore[misc]

    def compute_output_spec(self, inputs: dict[str, Tensor], **kwargs: Any) -> Any:
        inputs, _ = _split_companions(inputs, self.input)  # type: ignore[attr-defined]
        return super().compute_output_spec(inputs, **kwargs)  # type: ignore[misc]


def _split_companions(inputs: Any, names: Container[str]) -> tuple[Any, dict[str, Any]]:
    """(the inputs of these names, the arrays that a model hands on to its layers)."""
    if not isinstance(inputs, dict):
        return inputs, {}
    handed_on = {name: inputs[name] for name in COMPANIONS if name in inputs}
    return {name: array for name, array in inputs.items() if name in names}, handed_on
