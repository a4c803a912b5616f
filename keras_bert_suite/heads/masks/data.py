"""Texts whose tokens are masked, or that have masks already."""

import warnings
import zlib

import numpy as np

from keras_bert_suite.heads.base.unlabelled_texts import UnlabelledTextData
from keras_bert_suite.masking import TokenMasker
from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments
from keras_bert_suite.tokenizers.text_inputs import decode_text


class MaskedTextData(UnlabelledTextData):
    """Rows of texts. Training masks some of their tokens, and prediction reads their masks.

    Args:
        packer, encoder, input_names: as for `TextData`.
        masking: dict of the arguments of `TokenMasker` other than the tokenizer.
        direction: str, the attention pattern of a model that sees one side of a mask, or None.
    """

    takes_graphs = False  # The masker numbers the rows of a batch in Python.

    def __init__(self, packer, encoder, input_names=None, *, masking=None, direction=None):
        super().__init__(packer, encoder, input_names)
        self.masking = masking or {}
        self.direction = direction
        self._masker = self._masker_arguments = None
        if packer is not None:
            self.check_can_pack()

    def read(self, x, y=None, sample_weight=None, labelled=False):
        rows = super().read(x, y, sample_weight, labelled)
        if labelled and not rows.is_packed and not any(map(_has_words, rows.inputs)):
            raise ValueError(
                f"None of the {len(rows)} texts has a word, so there is no token to predict. Pass "
                "texts with words."
            )
        return rows

    def check_unlabelled(self, rows):
        if rows.labels is not None or rows.weights is not None:
            raise ValueError(
                "A MaskedLM makes labels from its texts, and takes no labels and no sample weights "
                "with texts. Pass the texts alone."
            )

    def pack(self, rows, labelled=False):
        """Masks texts, with the masked tokens as labels, or finds the masks that they have.

        The masks of a text in memory depend on the seed, the epoch and the number of its row. Those
        of a text in a dataset, or in `train_on_batch`, depend on the seed and its tokens. The
        inputs have `mask_positions` int32 (B, P).
        """
        if rows.is_packed:
            return super().pack(rows)
        if labelled:
            return self._mask(rows)
        self.check_masks()
        return pack_masked_texts(self.packer, self.encoder, rows.inputs), None, None

    def check_masks(self):
        """Raises ValueError if the task cannot guess the masks of texts."""
        self.check_can_pack()
        if self.direction is not None:
            raise ValueError(
                f"The backbone reads in one direction (attention_pattern={self.direction!r}) and "
                "guesses the token beside a mask, not the masked one. Ask a model that was trained "
                "on masks."
            )

    def _mask(self, rows):
        packed = self.pack_texts(rows.inputs)
        if rows.epoch is None:
            # Without the padding, whose length depends on the other rows of a batch.
            tokens = zip(packed["token_ids"], packed["padding_mask"], strict=True)
            numbers = np.array([zlib.crc32(ids[mask > 0].tobytes()) for ids, mask in tokens])
        else:
            numbers = rows.sources
        masked = self.find_masker()(packed, numbers, rows.epoch or 0)
        labels, weights = masked.pop("mask_ids"), masked.pop("mask_weights")
        return masked, labels, weights

    def find_masker(self):
        """The `TokenMasker` of the packer's tokenizer."""
        tokenizer, masking = self.packer.tokenizer, self.masking
        is_known = self._masker is not None and self._masker.tokenizer is tokenizer
        if not is_known or self._masker_arguments is not masking:
            self._masker = TokenMasker(tokenizer, **masking)
            self._masker_arguments = masking
        return self._masker


def _has_words(texts):
    return any(decode_text(text).strip() for text in texts)


def pack_masked_texts(packer, encoder, segments):
    """Packs a column of B texts that have the tokenizer's mask token instead of some tokens.

    The result has the inputs of the backbone, int32 (B, L), those of two streams, too, and
    `mask_positions`, int32 (B, P), 0 after the last mask of a text. Masks beyond `sequence_length`
    are left out with a warning, as in a SavedModel. A text without a mask is a ValueError.
    """
    if len(segments) != 1:
        raise ValueError(
            f"Masks are guessed in single texts, got rows of {len(segments)} texts. Join the texts "
            "of a row."
        )
    tokenizer = packer.tokenizer
    texts = list(segments[0])
    rows = [_tokenize(tokenizer, text) for text in texts]
    num_beyond = 0
    for text, row in zip(texts, rows, strict=True):
        is_mask = row == tokenizer.mask_token_id
        if not is_mask.any():
            raise ValueError(
                f"{text!r} has no {tokenizer.mask_token}. Put one where a token is to be guessed."
            )
        num_beyond += np.count_nonzero(is_mask[packer.count_places() :])
    if num_beyond:
        warnings.warn(
            f"Masks beyond sequence_length={packer.sequence_length} get no guesses: {num_beyond} "
            f"{tokenizer.mask_token} of {len(texts)} texts. Shorten the texts.",
            stacklevel=2,
        )
    lengths = np.array([len(row) for row in rows])
    packed = pack_segments(
        NUMPY,
        [(np.concatenate(rows), np.cumsum(lengths) - lengths, lengths)],
        sequence_length=packer.sequence_length,
        template=packer.row_template,
        allowed_lengths=packer.allowed_lengths(),
    )
    positions, is_slot, _ = find_masks(NUMPY, packed["token_ids"], tokenizer.mask_token_id)
    positions = np.where(is_slot, positions, 0)
    arrays = {**packed, **_see_other_tokens(packed["token_ids"] == tokenizer.mask_token_id)}
    if encoder.memory_shape is not None:
        num_layers, width = encoder.memory_shape
        arrays["memory"] = np.zeros((len(rows), num_layers, 0, width), "float32")
    selected = encoder.select({**arrays, "mask_positions": positions})
    return {**selected, "mask_positions": positions}


def _see_other_tokens(is_mask):
    """dict of the arrays of two streams, from bool (B, L): no token sees a mask.

    So each mask is guessed from all tokens that are known, as if it came first in the order.
    """
    return {
        "query_ranks": np.zeros_like(is_mask, "int32"),
        "key_ranks": np.where(is_mask, 0, -1).astype("int32"),
        "is_reversed": np.zeros((len(is_mask), 1), "int32"),
    }


def find_masks(xp, token_ids, mask_token_id):
    """Where the masks of packed rows, int32 (B, L), stand.

    Returns:
        (int32 (B, P), the positions of the masks of each row, and then of other tokens; bool (B,
        P), which of them are masks; int32 (B,), the number of masks). P is at least 1.
    """
    is_mask = token_ids == mask_token_id
    counts = xp.sum(xp.cast(is_mask), axis=1)
    # Keras cannot gather nothing from an empty batch, so there is always a slot.
    num_slots = xp.maximum(xp.max(counts), 1)
    positions = xp.cast(xp.argsort(xp.cast(~is_mask))[:, :num_slots])
    return positions, xp.arange(num_slots)[None, :] < counts[:, None], counts


def count_guessed(packer, text):
    """int, how many masks of a text a row has room for."""
    tokenizer, places = packer.tokenizer, packer.count_places()
    text = decode_text(text)
    if len(text.encode("utf-8", "ignore")) <= places:  # No token is shorter than a byte.
        return len(tokenizer.split_at_masks(text)) - 1
    return np.count_nonzero(_tokenize(tokenizer, text)[:places] == tokenizer.mask_token_id)


def _tokenize(tokenizer, text):
    """int32 (n,), the ids of a text. Masks get their id; the tokenizer would split them."""
    parts = [tokenizer.tokenize(part) for part in tokenizer.split_at_masks(text)]
    ids = parts[0]
    for part in parts[1:]:
        ids = [*ids, tokenizer.mask_token_id, *part]
    return np.array(ids, "int32")
