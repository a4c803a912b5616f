"""Texts whose tokens each predict the next one, and texts that are continued."""

import numpy as np

from keras_bert_suite.heads.base.unlabelled_texts import UnlabelledTextData
from keras_bert_suite.heads.continuations.rows import ContinuationRows
from keras_bert_suite.masking import NextTokenTargets
from keras_bert_suite.preprocessing.packing import NUMPY


class ContinuationData(UnlabelledTextData):
    """Rows of texts. Each token of a row predicts the next one, [SEP] at the end included.

    Of the backbone, numbers of positions are read. `max_length` is the most tokens that are
    written after a text.
    """

    takes_graphs = False  # Texts are packed in Python.
    #: No marks of texts are replaced.
    marks: dict[str, str] = {}

    def __init__(self, packer, encoder, input_names, *, backbone, max_length):
        super().__init__(packer, encoder, input_names)
        self._backbone = backbone
        self.max_length = max_length
        if packer is not None:
            self.target_rows.count_room(max_length)

    @property
    def target_rows(self):
        """`ContinuationRows`, which say how texts are packed for the decoder."""
        self.check_can_pack()
        return ContinuationRows(self.packer, self._backbone)

    def check_unlabelled(self, rows):
        if rows.labels is not None:
            raise ValueError(
                "A CausalLM makes labels from its texts, and takes none with texts. Pass the texts "
                "alone."
            )

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
            packed = self.add_columns(packed, rows.features)
            return {**packed, "mask_positions": places[:, None]}, None, None
        self.target_rows.count_room(1)
        inputs = NextTokenTargets(self.packer.tokenizer)(self.pack_texts(rows.inputs))
        inputs = self.add_columns(inputs, rows.features)
        labels, weights = inputs.pop("mask_ids"), inputs.pop("mask_weights")
        if rows.weights is not None:
            weights = weights * np.reshape(rows.weights, (-1, 1)).astype("float32")
        return inputs, labels, weights

    def pack_sources(self, texts, max_length):
        """dict of int32 (B, L), the inputs of the encoder, with room for a continuation."""
        return self.encoder.select(self.target_rows.pack_texts(texts, max_length))
