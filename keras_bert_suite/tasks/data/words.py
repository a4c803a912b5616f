"""Rows of words, with a label for each word or spans of words; long rows become windows."""

import numpy as np

from keras_bert_suite.data.label_encoding import weigh_token_labels
from keras_bert_suite.data.word_rows import check_span_shapes, check_token_shapes, read_word_rows
from keras_bert_suite.layers.heads.crf import NO_LABEL
from keras_bert_suite.tasks.data.entity_windows import cut_span_windows, pad_spans
from keras_bert_suite.tasks.data.texts import TextData
from keras_bert_suite.tasks.data.word_windows import cut_tag_windows


class WordData(TextData):
    """Rows of words, with a label for each word.

    A row is a list of words, or a text in which the tokenizer finds the words. A row that is too
    long becomes windows that overlap.

    Args: as for `TextData`.
    """

    takes_graphs = False  # Words are cut into windows in Python.
    needs_segment_packer = True

    #: function(rows), which checks the shapes of the labels and weights of packed arrays.
    check_shapes = staticmethod(check_token_shapes)

    def read_columns(self, x, y, sample_weight):
        return read_word_rows(x, y, sample_weight, self.check_shapes)

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
        return self.cut(rows)

    def cut(self, rows):
        """`WordWindows` over rows of words."""
        return cut_tag_windows(self.packer, rows)

    def pack(self, rows, labelled=False):
        inputs, labels, weights = super().pack(rows) if rows.is_packed else self._pack_windows(rows)
        if labels is None:
            return inputs, labels, weights
        return inputs, *self.weigh(labels, weights)

    def weigh(self, labels, weights):
        """The labels and weights for the loss.

        Args:
            labels: int (B, L), negative on tokens that do not count.
            weights: float (B,) for rows, (B, L) for tokens, or None.
        """
        return weigh_token_labels(labels, weights)

    def _pack_windows(self, rows):
        inputs, places = self.pack_tokens(*rows.inputs)
        if rows.labels is None:
            return inputs, None, rows.weights
        # Special tokens and padding have the position -1, so they take the label at the end.
        return inputs, np.concatenate([*rows.labels, [NO_LABEL]])[places], rows.weights

    def pack_tokens(self, windows):
        """Packs windows of tokens.

        Args:
            windows: object array of int32 arrays.

        Returns:
            `(inputs, places)`: dict of the backbone's inputs (B, L), and int32 (B, L), the place
            of each token among the tokens of all windows; -1 on special tokens and padding.
        """
        lengths = np.fromiter(map(len, windows), "int32", len(windows))
        starts = np.cumsum(lengths, dtype="int32") - lengths
        tokens = np.concatenate([np.zeros(0, "int32"), *windows])
        packed = self.packer.pack_tokens(tokens, starts, lengths)
        return self.encoder.select(packed), packed["token_indices"]


class EntitySpanData(WordData):
    """Rows of words or texts, with spans."""

    check_shapes = staticmethod(check_span_shapes)

    def cut(self, rows):
        return cut_span_windows(self.packer, rows)

    def weigh(self, labels, weights):
        return labels, weights

    def _pack_windows(self, rows):
        inputs, places = self.pack_tokens(*rows.inputs)
        if rows.labels is None:
            return inputs, None, rows.weights
        origin = self.packer.tokenizer.row_template.find_origin(places.shape[1])
        return inputs, pad_spans(rows.labels, origin), rows.weights
