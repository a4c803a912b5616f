"""Texts without labels."""

import dataclasses
from abc import abstractmethod

import numpy as np

from keras_bert_suite.data.input_dataset import unpack_only_labels
from keras_bert_suite.heads.base.labels import NoLabels
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts


class UnlabelledTextData(TextData):
    """Rows of texts, from which `pack` makes the labels. Packed arrays bring theirs."""

    needs_segment_packer = True

    def __init__(self, packer, encoder, input_names):
        super().__init__(packer, encoder, NoLabels(), input_names)

    def unpack(self, element):
        return unpack_only_labels(element)

    def read_columns(self, x, y, sample_weight):
        rows = super().read_columns(x, y, sample_weight)
        if not rows.is_packed:
            self.check_unlabelled(rows)
        return rows

    def read_batch_columns(self, x, y, sample_weight):
        rows = super().read_batch_columns(x, y, sample_weight)
        if rows.is_packed:
            return rows
        texts = tuple(canonicalize_texts(np.asarray(column))[0] for column in rows.inputs)
        self.check_unlabelled(rows)
        return dataclasses.replace(rows, inputs=texts)

    @abstractmethod
    def check_unlabelled(self, rows):
        """Raises a ValueError if `Rows` of texts have labels, or weights that have no use."""
