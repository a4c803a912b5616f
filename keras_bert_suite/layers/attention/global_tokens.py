"""The tokens of a row that attend to all tokens, and that all tokens attend to."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.layers.attention.sequence_layout import Layout
from keras_bert_suite.layers.companions import GLOBAL_ARGUMENT, LAYOUT_ARGUMENT, CompanionReader
from keras_bert_suite.layers.configured_layer import ConfiguredLayer

#: The number of global tokens is rounded up to a multiple of this, as kernels of GPUs want it.
_SLOT_MULTIPLE = 8


def mark_no_token(token_ids: Tensor, separator_id: int) -> Tensor:
    """int (B, L) -> bool (B, L), false everywhere."""
    return ops.zeros_like(token_ids, dtype="bool")


def mark_first_token(token_ids: Tensor, separator_id: int) -> Tensor:
    """int (B, L) -> bool (B, L), true at the first place of each row."""
    places = ops.arange(ops.shape(token_ids)[1], dtype="int32")
    return ops.logical_and(places == 0, ops.ones_like(token_ids, dtype="bool"))


def mark_first_text(token_ids: Tensor, separator_id: int) -> Tensor:
    """int (B, L) -> bool (B, L), true before the first separator of each row."""
    return _count_separators(token_ids, separator_id) == 0


def mark_later_texts(token_ids: Tensor, separator_id: int) -> Tensor:
    """int (B, L) -> bool (B, L), true behind the separators that end the first text.

    RoBERTa has two separators there, and BERT one. The separator at the end of a row is marked.
    """
    is_separator = token_ids == separator_id
    follows_one = ops.pad(ops.cast(is_separator, "int32"), [[0, 0], [1, 0]])[:, :-1] > 0
    before = _count_separators(token_ids, separator_id) - ops.cast(is_separator, "int32")
    return ops.logical_and(before > 0, ops.logical_not(ops.logical_and(is_separator, follows_one)))


def _count_separators(token_ids: Tensor, separator_id: int) -> Tensor:
    """int (B, L) -> int32 (B, L), the number of separators up to each place, and at it."""
    return ops.cumsum(ops.cast(token_ids == separator_id, "int32"), axis=1)


#: Which tokens are global: the name -> a function of token ids and of the id of the separator.
#: Source: Beltagy et al., 2020 (https://arxiv.org/abs/2004.05150), section 3.1, for texts, for
#: questions and for choices.
GLOBAL_TOKENS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "none": mark_no_token,
    "first_token": mark_first_token,
    "first_text": mark_first_text,
    "later_texts": mark_later_texts,
}

#: How many tokens of a row these names mark at most, whatever the row is.
_COUNTS = {"none": 0, "first_token": 1}


@dataclasses.dataclass(frozen=True)
class LongRows:
    """The rows of a batch, as attention within a window and of global tokens reads them.

    A row has up to G global tokens. Each has a slot. Hidden states may stand in packed rows
    (R, W, H); this attention puts them back to the rows of the batch.

    Attributes:
        padding_mask: int32 (B, L), 1 on tokens and 0 on padding.
        is_global: bool (B, L).
        places: int32 (B, G), l of the token in each slot, and 0 in an empty slot.
        is_taken: bool (B, G), whether the slot has a token.
        layout: `SequenceLayout`, `BucketedLayout` or None.
    """

    padding_mask: Tensor
    is_global: Tensor
    places: Tensor
    is_taken: Tensor
    layout: Layout | None = None

    @property
    def num_slots(self) -> int:
        """int G."""
        return self.places.shape[1]

    def unpack(self, hidden: Tensor) -> Tensor:
        """Puts hidden states to the rows of the batch: float (R, W, H) -> (B, L, H)."""
        return hidden if self.layout is None else self.layout.unpack(hidden, self.padding_mask)

    def pack(self, hidden: Tensor) -> Tensor:
        """Puts hidden states back to the packed rows: float (B, L, H) -> (R, W, H)."""
        return hidden if self.layout is None else self.layout.pack(hidden)

    def gather(self, hidden: Tensor) -> Tensor:
        """The hidden states of the global tokens: float (B, L, H) -> (B, G, H)."""
        return _take_places(hidden, self.places)

    def replace(self, hidden: Tensor, of_slots: Tensor) -> Tensor:
        """(B, L, H), where each global token has the state of its slot, `of_slots` (B, G, H)."""
        slots = ops.cumsum(ops.cast(self.is_global, "int32"), axis=1) - 1
        replaced = _take_places(of_slots, ops.where(self.is_global, slots, 0))
        return ops.where(self.is_global[:, :, None], replaced, hidden)


def _take_places(x: Tensor, places: Tensor) -> Tensor:
    """float (B, N, H), int32 (B, P) in [0, N) -> float (B, P, H)."""
    num_rows, size = ops.shape(x)[0], ops.shape(x)[1]
    rows = ops.arange(num_rows, dtype="int32")[:, None]
    return ops.take(ops.reshape(x, (-1, x.shape[-1])), rows * size + places, axis=0)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class GlobalTokens(CompanionReader, ConfiguredLayer):
    """Finds the global tokens of a batch.

    Their number is data, but compilers want an array of known width. So a row has a known number of
    slots for them: one for "first_token", else `max_tokens`, rounded up to a multiple of 8. The
    slots are filled without a sort, by comparing ranks, so that the layer exports everywhere.

    Args:
        pattern: str, one of `GLOBAL_TOKENS`.
        separator_id: int, the token that ends a text of a row, which "first_text" and "later_texts"
            look for.
        max_tokens: int, the maximum number of global tokens of a row. Of "first_text" and
            "later_texts" the first `max_tokens` tokens are global.
    """

    companions = (LAYOUT_ARGUMENT, GLOBAL_ARGUMENT)
    changeable = frozenset({"pattern"})

    def __init__(
        self,
        pattern: str = "first_token",
        separator_id: int = 2,
        max_tokens: int = 128,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pattern = pattern
        self.separator_id = separator_id
        self.max_tokens = max_tokens

    @property
    def pattern(self) -> str:
        """str, one of `GLOBAL_TOKENS`."""
        return self._pattern

    @pattern.setter
    def pattern(self, value: str) -> None:
        check_choice("global_tokens", value, GLOBAL_TOKENS)
        self._pattern = value

    def call(
        self,
        token_ids: Tensor,
        padding_mask: Tensor,
        sequence_layout: Layout | None = None,
        global_attention_mask: Tensor | None = None,
    ) -> LongRows:
        """Marks the global tokens, and gives each a slot: `LongRows`.

        Args:
            token_ids: int (B, L).
            padding_mask: int (B, L), 1 on tokens and 0 on padding.
            sequence_layout: `SequenceLayout`, `BucketedLayout` or None.
            global_attention_mask: int (..., L) of B rows, 1 on global tokens and 0 on others, or
                None for the rule of the pattern. More than `max_tokens` in a row are a ValueError.
                In a compiled function this is not known; there the first `max_tokens` are global.
        """
        if global_attention_mask is None:
            limit = min(_COUNTS.get(self.pattern, self.max_tokens), self.max_tokens)
            is_marked = GLOBAL_TOKENS[self.pattern](token_ids, self.separator_id)
        else:
            limit = self.max_tokens
            check_global_tokens(global_attention_mask, limit)
            is_marked = ops.reshape(global_attention_mask, ops.shape(padding_mask)) != 0
        is_token = padding_mask != 0
        is_marked = ops.logical_and(is_marked, is_token)
        ranks = ops.cumsum(ops.cast(is_marked, "int32"), axis=1)
        is_global = ops.logical_and(is_marked, ranks <= limit)
        num_slots = limit + -limit % _SLOT_MULTIPLE
        slots = ops.arange(num_slots, dtype="int32")[None, :]
        fits = ops.logical_and(is_global[:, None, :], (ranks - 1)[:, None, :] == slots[..., None])
        columns = ops.arange(ops.shape(token_ids)[1], dtype="int32")
        places = ops.sum(ops.where(fits, columns, 0), axis=-1)
        return LongRows(
            padding_mask=ops.cast(is_token, "int32"),
            is_global=is_global,
            places=ops.cast(places, "int32"),
            is_taken=slots < ops.minimum(ranks[:, -1:], limit),
            layout=sequence_layout,
        )

    def compute_output_spec(self, token_ids: Tensor, padding_mask: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor(padding_mask.shape, dtype="int32")


def check_global_tokens(mask: Any, limit: int) -> None:
    """Raises ValueError if a row has more global tokens than the model has slots for.

    A tensor of a compiled function is not checked.
    """
    if not _has_values(mask):
        return
    counts = (ops.convert_to_numpy(mask) != 0).sum(axis=-1)
    if counts.size and counts.max() > limit:
        raise ValueError(
            f"global_attention_mask has {counts.max()} global tokens in a row, and the model has "
            f"room for {limit}. Mark fewer tokens, or build it with "
            f"`max_global_tokens={counts.max()}`."
        )


def _has_values(x: Any) -> bool:
    """Whether an array or tensor has values. In a function that is compiled it has none."""
    if isinstance(x, np.ndarray):
        return True
    backend = keras.config.backend()
    if backend == "torch":
        import torch

        return not torch.compiler.is_compiling()
    if backend == "jax":
        import jax

        return not isinstance(x, jax.core.Tracer)
    return hasattr(x, "numpy")
