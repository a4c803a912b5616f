"""Texts in the places of a pattern, with masks for the word of a label."""

import dataclasses

import numpy as np

from keras_bert_suite.heads.base.input_checks import order_columns
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.masks.data import find_masks
from keras_bert_suite.heads.patterns.pattern import (
    MASK,
    find_word_ids,
    read_pattern,
    read_verbalizers,
)
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import (
    choose_namespace,
    kept_lengths,
    pack_segments,
    tokenize_segments,
)


class PatternData(TextData):
    """Rows of texts, which a pattern makes one text with K masks.

    The parts of a pattern are tokenized one by one, and a row that is too long loses tokens of its
    texts alone.

    Args:
        packer, encoder: as for `TextData`.
        labels: `Classes`, the labels of the verbalizers.
        pattern, verbalizers: see `PatternClassifier`.
    """

    needs_segment_packer = True

    def __init__(self, packer, encoder, labels, pattern, verbalizers):
        self.parts = read_pattern(pattern)
        self.pattern, self.verbalizers = pattern, read_verbalizers(verbalizers)
        names = [name for is_place, name in self.parts if is_place and name != MASK]
        super().__init__(packer, encoder, labels, names)

    @property
    def packer(self):
        """The preprocessor, whose tokenizer has the verbalizers."""
        return TextData.packer.fget(self)

    @packer.setter
    def packer(self, packer):
        TextData.packer.fset(self, packer)
        if not isinstance(self._packer, SegmentPacker):
            return
        if self._packer.truncation == "head_tail":
            raise ValueError(
                "A PatternClassifier keeps the beginning or the end of a text, got a SegmentPacker "
                "with truncation='head_tail'. Pass 'longest_first', or 'tail' for the end."
            )
        try:
            self._packer.tokenizer.vocabulary_size()
        except ValueError:
            return  # A tokenizer that is being loaded gets its vocabulary later.
        self.find_word_ids()

    def find_word_ids(self):
        """int32 (C, K), the tokens of the verbalizers; see `find_word_ids` of the pattern."""
        return find_word_ids(self.packer.tokenizer, self.verbalizers)

    def order(self, inputs, names):
        if len(inputs) != len(self.input_names):
            raise ValueError(
                f"The pattern {self.pattern!r} has places for {', '.join(self.input_names)}, got "
                f"rows of {len(inputs)} texts. Pass a column for each place, in this order."
            )
        return tuple(inputs[i] for i in order_columns(len(inputs), names, self.input_names))

    def pack(self, rows, labelled=False):
        inputs, labels, weights = super().pack(rows, labelled)
        return (inputs if rows.is_packed else self.add_places(inputs)), labels, weights

    def add_places(self, packed):
        """Packed texts with `mask_positions` (B, K) and `verbalizer_ids` (B, C, K), int32."""
        xp, ids = choose_namespace(packed["token_ids"]), packed["token_ids"]
        positions, _, counts = find_masks(xp, ids, self.packer.tokenizer.mask_token_id)
        # As many copies as rows, in an array whose other sizes are known in a graph.
        words = self.find_word_ids()
        copies = xp.cast(xp.zeros_like(counts))[:, None, None] + words[None]
        return {**packed, "mask_positions": positions, "verbalizer_ids": copies}

    def pack_texts(self, texts):
        self.check_can_pack()
        packer, tokenizer = self.packer, self.packer.tokenizer
        xp, ragged, _ = tokenize_segments(tokenizer, texts)
        masks = np.full(self.find_word_ids().shape[1], tokenizer.mask_token_id, "int32")
        words = [
            None if is_place and part != MASK else masks if is_place else self._tokenize(part)
            for is_place, part in self.parts
        ]
        places = packer.count_places() - sum(len(ids) for ids in words if ids is not None)
        if places < 1:
            raise ValueError(
                f"sequence_length={packer.sequence_length} has no place for a text beside the "
                f"tokens of the pattern {self.pattern!r}. It must be at least "
                f"{packer.sequence_length - places + 1}."
            )
        kept = kept_lengths(xp, [lengths for _, _, lengths in ragged], places, packer.truncation)
        cut = iter(
            (ids, starts + (lengths - keep if packer.truncation == "tail" else 0), keep)
            for (ids, starts, lengths), keep in zip(ragged, kept, strict=True)
        )
        none = xp.zeros_like(kept[0])
        segments = [
            next(cut) if ids is None else (xp.asarray(ids), none, none + len(ids)) for ids in words
        ]
        segments_of = (0,) * len(segments) if packer.row_template.has_segment_ids else None
        template = dataclasses.replace(
            packer.row_template, num_separators=0, segment_ids=segments_of
        )
        packed = pack_segments(
            xp,
            segments,
            packer.sequence_length,
            template,
            allowed_lengths=packer.allowed_lengths(),
        )
        return self.encoder.select(packed)

    def _tokenize(self, words):
        """int32 (n,), the tokens of a part of the pattern."""
        return np.array(self.packer.tokenizer.tokenize(words), "int32")
