"""Rows of words, with a label for each word or spans of words; long rows become windows."""

import dataclasses
import warnings

import numpy as np

from keras_bert_suite.data.arrays import check_same_rows, leave_tensorflow
from keras_bert_suite.data.word_rows import check_token_shapes, read_word_rows
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.tags.windows import cut_tag_windows
from keras_bert_suite.heads.tags.word_cutting import WordCutting
from keras_bert_suite.heads.tags.word_cutting_rules import describe_cutting
from keras_bert_suite.layers.heads.crf import NO_LABEL


class WordData(TextData):
    """Rows of words, with a label for each word.

    A row is a list of words, or a text, which `word_cutting` cuts into words. A row that is too
    long becomes windows that overlap.

    Args:
        packer, encoder, labels, input_names: as for `TextData`.
        word_cutting: `WordCutting`, its configuration, or None, by which the tokenizer finds words.
    """

    takes_graphs = False  # Words are cut into windows in Python.
    needs_segment_packer = True

    #: function(rows), which checks the shapes of the labels and weights of packed arrays.
    check_shapes = staticmethod(check_token_shapes)

    def __init__(self, packer, encoder, labels, input_names=None, word_cutting=None):
        super().__init__(packer, encoder, labels, input_names)
        self.word_cutting = word_cutting
        self._has_read_batches = False

    @property
    def word_cutting(self):
        """`WordCutting`, or None."""
        return self._word_cutting

    @word_cutting.setter
    def word_cutting(self, cutting):
        self._word_cutting = WordCutting.read(cutting)

    def learn_rows(self, rows):
        words = [] if rows.is_packed else [row for row in rows.inputs[0] if isinstance(row, list)]
        if not any(words):
            return None
        is_new = self.word_cutting is None
        if is_new:
            self.word_cutting = WordCutting.learn(words)
        return describe_cutting(self.word_cutting, words, is_new)

    def check_changed(self, columns, names):
        for column in columns.values():
            if any(isinstance(row, (str, bytes)) for row in column):
                raise ValueError(
                    "The labels of words and spans stand at places of a text, which changed "
                    "characters would move. Pass rows as lists of words; TextNoise then changes "
                    "each word by itself."
                )

    def read_columns(self, x, y, sample_weight):
        x, y, sample_weight = leave_tensorflow((x, y, sample_weight))
        x, columns = self.split_features(x)
        rows = read_word_rows(x, y, sample_weight, self.check_shapes)
        if columns is not None:
            rows = dataclasses.replace(rows, features=columns)
            check_same_rows(rows.inputs, rows.features, names=("rows", "conditions"))
        return rows

    def read_batch(self, x, y=None, sample_weight=None, labelled=False):
        rows = super().read_batch(x, y, sample_weight, labelled)
        self._has_read_batches |= labelled and not rows.is_packed
        return rows

    def read_batch_columns(self, x, y, sample_weight):
        if isinstance(x, list) and x and isinstance(x[0], tuple):
            raise ValueError(
                "A row must be a list of words, got a tuple, as the `default_collate` of PyTorch "
                "makes it of the first words of all rows. Pass the DataLoader a `collate_fn` that "
                "returns a list of rows and a list of their labels."
            )
        return self.read_columns(x, y, sample_weight)

    def unpack(self, element):
        # A list of rows of words is a batch, as a list of texts is for other tasks.
        rows = isinstance(element, list) and all(
            isinstance(row, list) and all(isinstance(word, (str, bytes)) for word in row)
            for row in element
        )
        return (element, None, None) if rows else super().unpack(element)

    def window(self, rows):
        """`WordWindows` over rows; see `cut_tag_windows`. Packed arrays stay as they are."""
        if rows.is_packed:
            return rows
        self.check_can_pack()
        if self._has_read_batches and self.word_cutting is None and rows.labels is None:
            self._warn_of_texts(rows.inputs[0])
        return self.cut(rows)

    def _warn_of_texts(self, rows):
        texts = sum(isinstance(row, (str, bytes)) for row in rows)
        if texts:
            self._has_read_batches = False  # Once is enough.
            warnings.warn(
                f"{texts} rows are texts, and this task has read the words of a dataset, which no "
                "`fit` sees as a whole. The tokenizer cuts the texts into words, so `Coca-Cola` is "
                "three. To cut them as the rows are cut, set `task.word_cutting = "
                "WordCutting.learn(rows)`.",
                stacklevel=2,
            )

    def cut(self, rows):
        """`WordWindows` over rows of words."""
        return cut_tag_windows(self.packer, rows, self.word_cutting)

    def pack(self, rows, labelled=False):
        if rows.is_packed:
            return super().pack(rows)
        inputs, indices = self.pack_tokens(*rows.inputs)
        inputs = self.add_columns(inputs, rows.features)
        if rows.labels is None:
            return inputs, None, rows.weights
        return inputs, *self.labels.weigh(self.pack_labels(rows.labels, indices), rows.weights)

    def pack_labels(self, labels, indices):
        """The labels of a batch of windows as one array; `indices` are from `pack_tokens`."""
        # Special tokens and padding have the position -1, so they take the label at the end.
        return np.concatenate([*labels, [NO_LABEL]])[indices]
