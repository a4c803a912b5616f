"""Packs texts for a model that reads them from left to right."""

from typing import Any

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments

#: The least tokens of a text that is continued: [CLS] and a token.
_LEAST_TEXT = 2


class ContinuationRows:
    """How rows of a `CausalLM` are packed: [CLS] text [SEP], and [CLS] text to be continued.

    Of the backbone, numbers of positions are read. A packer whose rows do not begin with the start
    token, or with `segment_ids`, is a ValueError.
    """

    def __init__(self, packer: SegmentPacker, backbone: Any) -> None:
        template = packer.tokenizer.row_template
        if (template.summary_place, template.padding_side) != ("first", "right"):
            raise ValueError(
                "A CausalLM reads rows that begin with the start token and end with padding, got "
                f"{with_article(packer.tokenizer)} with {template}. Use another tokenizer."
            )
        if packer.segment_ids is not None:
            raise ValueError(
                "A CausalLM has a text and its continuation in segment 0, got a SegmentPacker with "
                f"segment_ids={packer.segment_ids}. Set them to None."
            )
        self.packer = packer
        positions = backbone.max_sequence_length or packer.sequence_length
        self.max_row_length = min(packer.sequence_length, positions)

    def count_room(self, max_length: int) -> int:
        """int, the most tokens of a text that `max_length` tokens are to follow, [CLS] included.

        If there is no room for a token of the text, that is a ValueError.
        """
        room = self.max_row_length - max_length
        if room < _LEAST_TEXT:
            raise ValueError(
                f"max_length={max_length} leaves {max(room, 0)} tokens for the text that is "
                f"continued, and wanted are {_LEAST_TEXT}: sequence_length is "
                f"{self.packer.sequence_length}, and text and continuation share "
                f"{self.max_row_length} positions. Choose a smaller max_length, or a larger "
                "sequence_length."
            )
        return room

    def pack_sources(
        self,
        xp: Any,
        ids: Any,
        lengths: Any,
        max_length: int,
        allowed_lengths: tuple[int, ...] | None = None,
    ) -> dict[str, Tensor]:
        """Packs tokenized texts so that `max_length` tokens have room: dict of int32 (B, L).

        There is no [SEP]. A text that is longer loses its beginning. Arguments: as for
        `TargetRows.pack_sources`.
        """
        # The template ends a row with [SEP], which is dropped.
        room = self.count_room(max_length) + 1
        if allowed_lengths is not None:
            allowed_lengths = (*(n for n in allowed_lengths if n < room), room)
        packed = pack_segments(
            xp,
            [(ids, xp.cumsum(lengths) - lengths, lengths)],
            sequence_length=room,
            template=self.packer.row_template,
            truncation="tail",
            allowed_lengths=allowed_lengths,
        )
        mask = packed["padding_mask"][:, 1:]
        kept = {name: array[:, :-1] * mask for name, array in packed.items()}
        pad_token_id = self.packer.tokenizer.pad_token_id
        return {**kept, "token_ids": kept["token_ids"] + (1 - mask) * pad_token_id}

    def pack_texts(self, texts: Any, max_length: int) -> dict[str, Any]:
        """`pack_sources` for a list of str."""
        ids, lengths = self.packer.tokenizer.tokenize_flat(list(texts))
        allowed = self.packer.allowed_lengths()
        return self.pack_sources(NUMPY, ids, lengths.astype("int32"), max_length, allowed)

    def find_first_tokens(self, xp: Any, packed: dict[str, Any]) -> Any:
        """int32 (B,), the last tokens of packed texts, which a decoder reads first."""
        token_ids, places = packed["token_ids"], self.find_last_places(xp, packed)
        is_last = xp.cast(xp.arange(xp.shape(token_ids)[1])[None, :] == places[:, None])
        return xp.cast(xp.sum(token_ids * is_last, axis=1))

    def find_last_places(self, xp: Any, packed: dict[str, Any]) -> Any:
        """int32 (B,), the places of the last tokens of packed texts."""
        return xp.cast(xp.sum(packed["padding_mask"], axis=1) - 1)
