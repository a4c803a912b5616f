"""Texts whose tokens each predict the next one, and texts that are continued."""

import dataclasses

import numpy as np

from keras_bert_suite.data.input_dataset import unpack_only_labels
from keras_bert_suite.heads.base.labels import NoLabels
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.continuations.rows import ContinuationRows
from keras_bert_suite.masking import NextTokenTargets
from keras_bert_suite.preprocessing.packing import NUMPY
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts


class ContinuationData(TextData):
    """Rows of texts. Each token of a row predicts the next one, [SEP] at the end included.

    Of the backbone, numbers of positions are read. `max_length` is the most tokens that are
    written after a text.
    """

    takes_graphs = False  # Texts are packed in Python.
    needs_segment_packer = True
    #: No marks of texts are replaced.
    marks: dict[str, str] = {}

    def __init__(self, packer, encoder, input_names, *, backbone, max_length):
        super().__init__(packer, encoder, NoLabels(), input_names)
        self._backbone = backbone
        self.max_length = max_length
        if packer is not None:
            self.target_rows.count_room(max_length)

    @property
    def target_rows(self):
        """`ContinuationRows`, which say how texts are packed for the decoder."""
        self.check_can_pack()
        return ContinuationRows(self.packer, self._backbone)

    def unpack(self, element):
        return unpack_only_labels(element)

    def read_columns(self, x, y, sample_weight):
        rows = super().read_columns(x, y, sample_weight)
        return rows if rows.is_packed else _check_no_labels(rows)

    def read_batch_columns(self, x, y, sample_weight):
        rows = super().read_batch_columns(x, y, sample_weight)
        if rows.is_packed:
            return rows
        texts = tuple(canonicalize_texts(np.asarray(column))[0] for column in rows.inputs)
        return _check_no_labels(dataclasses.replace(rows, inputs=texts))

    def order(self, inputs, names):
        if len(inputs) != 1:
            raise ValueError(
                f"A row of a CausalLM is one text, got {len(inputs)} columns of texts. Join the "
                "texts of a row."
            )
        return super().order(inputs, names)

    def pack(self, rows, labelled=False):
        """Packs whole texts for training, or texts so that the token after them is scored."""
        if rows.is_packed:
            return super().pack(rows)
        if not labelled:
            packed = self.pack_sources(rows.inputs[0], self.max_length)
            places = self.target_rows.find_last_places(NUMPY, packed)
            return {**packed, "mask_positions": places[:, None]}, None, None
        self.target_rows.count_room(1)
        inputs = NextTokenTargets(self.packer.tokenizer)(self.pack_texts(rows.inputs))
        labels, weights = inputs.pop("mask_ids"), inputs.pop("mask_weights")
        if rows.weights is not None:
            weights = weights * np.reshape(rows.weights, (-1, 1)).astype("float32")
        return inputs, labels, weights

    def pack_sources(self, texts, max_length):
        """dict of int32 (B, L), the inputs of the encoder, with room for a continuation."""
        return self.encoder.select(self.target_rows.pack_texts(texts, max_length))


def _check_no_labels(rows):
    if rows.labels is not None:
        raise ValueError(
            "A CausalLM makes labels from its texts, and takes none with texts. Pass the texts "
            "alone."
        )
    return rows
