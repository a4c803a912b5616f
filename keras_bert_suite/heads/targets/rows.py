"""Packs sources and their targets for the two kinds of decoders.

Both classes have the same methods. They take NumPy arrays and a packer, and no model: `JoinedRows`
for decoders that read source and target in one row, `SeparateRows` for decoders that read two rows.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments
from keras_bert_suite.preprocessing.padding_lengths import list_lengths

#: The least tokens of a source: [CLS], a token and [SEP].
_LEAST_SOURCE = 3


class TargetRows(ABC):
    """How rows of a `Seq2Seq` are packed. Of the backbone, numbers of positions are read.

    A packer whose rows have the start token at another place is a ValueError.
    """

    #: The inputs of a task beside the encoder's.
    further_inputs: tuple[str, ...]
    #: The places that the start token may have in a row.
    start_places: tuple[str, ...] = ("first",)
    #: int, the token that begins each target, unless another one is asked for; None for any.
    forced_token_id: int | None = None

    def __init__(self, packer: SegmentPacker, backbone: Any) -> None:
        template = packer.tokenizer.row_template
        if template.summary_place not in self.start_places or template.padding_side != "right":
            raise ValueError(
                "A Seq2Seq reads rows that begin with the start token and end with padding, got "
                f"{with_article(packer.tokenizer)} with {template}. Use another tokenizer."
            )
        self.packer = packer
        positions = backbone.max_sequence_length or packer.sequence_length
        self.max_source_length = min(packer.sequence_length, positions)

    @property
    @abstractmethod
    def first_token_id(self) -> int:
        """int, the first token that the decoder reads."""

    @abstractmethod
    def count_room(self, max_target_length: int) -> int:
        """int, the most tokens of a source, [CLS] and [SEP] among them.

        If a target of `max_target_length` tokens has no room, that is a ValueError.
        """

    @abstractmethod
    def pack(self, sources: Any, targets: Any) -> tuple[dict[str, Any], Any, Any]:
        """Packs pairs of B sources and B targets for training.

        Returns:
            tuple (dict of int32 arrays, the inputs of the task; labels int32 (B, P); weights
            float32 (B, P), 0 where there is no token to predict).
        """

    def find_first_tokens(self, xp: Any, packed: dict[str, Any]) -> Any:
        """int32 (B,), the first tokens that the decoder reads after packed sources."""
        return xp.zeros_like(packed["padding_mask"][:, 0]) + self.first_token_id

    @abstractmethod
    def begin(self, packed: dict[str, Any]) -> dict[str, Any]:
        """Completes packed sources to inputs of the task that score the first token of a target."""

    def pack_sources(
        self,
        xp: Any,
        ids: Any,
        lengths: Any,
        max_target_length: int,
        allowed_lengths: tuple[int, ...] | None = None,
    ) -> dict[str, Tensor]:
        """Packs tokenized sources, so that a target has room: dict of int32 (B, L).

        `ids`, int32 (T,), has all sources, and `lengths`, int32 (B,), their numbers of tokens. A
        batch is padded to one of `allowed_lengths`; None for any length.
        """
        room = self.count_room(max_target_length)
        return self._pack_single(xp, ids, lengths, room, allowed_lengths)

    def pack_texts(self, sources: Any, max_target_length: int) -> dict[str, Any]:
        """`pack_sources` for a list of str."""
        ids, lengths = self._tokenize(sources)
        allowed = self.packer.allowed_lengths()
        return self.pack_sources(NUMPY, ids, lengths, max_target_length, allowed)

    def _tokenize(self, texts: Any) -> tuple[Any, Any]:
        ids, lengths = self.packer.tokenizer.tokenize_flat(list(texts))
        return ids, lengths.astype("int32")

    def _pack_single(self, xp, ids, lengths, room, allowed_lengths, template=None):
        packer = self.packer
        if allowed_lengths is not None:
            allowed_lengths = (*(n for n in allowed_lengths if n < room), room)
        return pack_segments(
            xp,
            [(ids, xp.cumsum(lengths) - lengths, lengths)],
            sequence_length=room,
            template=template or packer.row_template,
            allowed_lengths=allowed_lengths,
            **self._list_cuts(),
        )

    def _list_cuts(self) -> dict[str, Any]:
        """The arguments of `pack_segments` that say how a text that is too long is cut."""
        return {"truncation": self.packer.truncation, "head_length": self.packer.head_length}


class JoinedRows(TargetRows):
    """A row is a pair, [CLS] source [SEP] target [SEP]. The first [SEP] predicts a token, too.

    A packer with `segment_ids` is a ValueError: segment 1 says which tokens are learned.
    """

    further_inputs = ("mask_positions",)

    def __init__(self, packer: SegmentPacker, backbone: Any) -> None:
        super().__init__(packer, backbone)
        if packer.segment_ids is not None:
            raise ValueError(
                "A Seq2Seq has the source in segment 0 and the target in segment 1, got a "
                f"SegmentPacker with segment_ids={packer.segment_ids}. Set them to None."
            )

    @property
    def first_token_id(self) -> int:
        return self.packer.tokenizer.end_token_id

    def count_room(self, max_target_length: int) -> int:
        room = self.max_source_length - max_target_length
        if room < _LEAST_SOURCE:
            raise ValueError(
                f"A target of {max_target_length} tokens leaves {room} tokens for its source: "
                f"sequence_length is {self.packer.sequence_length}, and source and target share "
                f"{self.max_source_length} positions. Choose a smaller max_target_length, or a "
                "larger sequence_length."
            )
        return room

    def pack(self, sources: Any, targets: Any) -> tuple[dict[str, Any], Any, Any]:
        packed = self.packer.pack(sources, list(targets))
        fixed_shape = self.packer.allowed_lengths() is not None
        positions, labels, weights = find_predictions(packed, fixed_shape)
        return {**packed, "mask_positions": positions}, labels, weights

    def begin(self, packed: dict[str, Any]) -> dict[str, Any]:
        last = packed["padding_mask"].sum(axis=1, keepdims=True) - 1
        return {**packed, "mask_positions": last.astype("int32")}


class SeparateRows(TargetRows):
    """Rows are [CLS] source [SEP] and [CLS] target [SEP]. Each token predicts the next one.

    The decoder does not read the last [SEP]. With `starts_with_end`, as in BART, it reads an end
    token first, which predicts the token that begins a target: `</s> <s> a b` predicts
    `<s> a b </s>`. More precisely it is the token that ends a row of a target. That of mBART is the
    code of a language: `ro_RO a b </s>` predicts `a b </s> ro_RO`.
    """

    further_inputs = ("decoder_token_ids", "decoder_padding_mask")

    def __init__(self, packer: SegmentPacker, backbone: Any, starts_with_end: bool = False) -> None:
        self.start_places = ("first", "last") if starts_with_end else ("first",)
        super().__init__(packer, backbone)
        self.max_decoder_length = backbone.max_decoder_length
        self.starts_with_end = starts_with_end
        self._template = packer.tokenizer.target_template

    @property
    def first_token_id(self) -> int:
        template = self._template
        ends = self.starts_with_end and template.summary_place == "first"
        return template.end_token_id if ends else template.start_token_id

    @property
    def forced_token_id(self) -> int | None:  # type: ignore[override]
        template = self._template
        is_written = self.starts_with_end and template.summary_place == "first"
        return template.start_token_id if is_written else None

    def count_room(self, max_target_length: int) -> int:
        if max_target_length > self.max_decoder_length:
            raise ValueError(
                f"A target of {max_target_length} tokens does not fit the "
                f"{self.max_decoder_length} positions of the decoder. Choose a smaller "
                "max_target_length."
            )
        return self.max_source_length

    def pack(self, sources: Any, targets: Any) -> tuple[dict[str, Any], Any, Any]:
        packed = self.packer.pack(sources)
        num_unread = 0 if self.starts_with_end else 1
        room = self._limit_targets(self.max_decoder_length + num_unread)
        allowed = self._list_target_lengths(room)
        rows = self._pack_single(
            NUMPY, *self._tokenize(targets), room, allowed, template=self._template
        )
        ids, mask = rows["token_ids"], rows["padding_mask"]
        if self.starts_with_end:
            first = np.full((len(ids), 1), self.first_token_id, ids.dtype)
            read, labels = np.concatenate([first, ids[:, :-1]], axis=1), ids
        else:
            read, labels, mask = ids[:, :-1], ids[:, 1:], mask[:, 1:]
        decoder = {"decoder_token_ids": read, "decoder_padding_mask": mask}
        return {**packed, **decoder}, labels, mask.astype("float32")

    def _limit_targets(self, room: int) -> int:
        """The most tokens of a row of a target, of which `room` have positions in the decoder."""
        return min(self.packer.sequence_length, room)  # Targets are cut as sources are.

    def _list_target_lengths(self, room: int) -> tuple[int, ...] | None:
        """The lengths to which targets of at most `room` tokens are padded; None for any."""
        return self.packer.allowed_lengths()

    def begin(self, packed: dict[str, Any]) -> dict[str, Any]:
        first = np.full((len(packed["padding_mask"]), 1), self.first_token_id, "int32")
        decoder = {"decoder_token_ids": first, "decoder_padding_mask": np.ones_like(first)}
        return {**packed, **decoder}


class FrameRows(SeparateRows):
    """`SeparateRows` whose sources are frames. The packer is a `FramePacker` with a tokenizer."""

    def pack_texts(self, sources: Any, max_target_length: int) -> dict[str, Any]:
        self.count_room(max_target_length)
        return self.packer.pack(sources)

    def _limit_targets(self, room: int) -> int:
        return room  # `sequence_length` counts frames.

    def _list_target_lengths(self, room: int) -> tuple[int, ...] | None:
        return list_lengths(room, self.packer.padding_lengths)

    def _list_cuts(self) -> dict[str, Any]:
        return {}


def find_predictions(
    packed: dict[str, np.ndarray], fixed_shape: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tokens of pairs that predict the next token, and these tokens.

    >>> find_predictions({"token_ids": [[2, 7, 3, 8, 3, 0]], "segment_ids": [[0, 0, 0, 1, 1, 0]]})
    ([[2, 3]], [[8, 3]], [[1.0, 1.0]])

    Of int32 (B, L), `segment_ids` are 1 on the target and its [SEP]. The result is positions int32
    (B, P), labels int32 (B, P) and weights float32 (B, P), 0 in slots without a token. With
    `fixed_shape` P is L - 1, and not the number of tokens of the longest target. So a step that is
    compiled for each shape is compiled for each L only.
    """
    token_ids, segment_ids = (np.asarray(packed[n]) for n in ("token_ids", "segment_ids"))
    predicts = segment_ids[:, 1:] == 1
    counts = predicts.sum(axis=1)
    num_slots = predicts.shape[1] if fixed_shape else max(int(counts.max(initial=0)), 1)
    slots = np.arange(num_slots) < counts[:, None]
    positions = np.zeros(slots.shape, "int32")
    positions[slots] = np.nonzero(predicts)[1]
    labels = np.take_along_axis(token_ids, positions + 1, axis=1).astype("int32")
    return positions, labels * slots, slots.astype("float32")
