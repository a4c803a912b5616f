"""Rows of frames with a label for each frame, such as the phone that is spoken."""

import numpy as np

from keras_bert_suite.data.rows import Rows
from keras_bert_suite.data.word_rows import check_token_shapes
from keras_bert_suite.heads.base.frame_data import FrameData
from keras_bert_suite.heads.tags.answers import ChainAnswers, WordAnswers, WordLogits, split_words
from keras_bert_suite.heads.tags.scores import score_entities
from keras_bert_suite.layers.heads.crf import NO_LABEL


class FrameTagData(FrameData):
    """Rows of frames, with a label for each frame.

    Args:
        packer, encoder, labels, input_names: as for `FrameData`.
        word_cutting: None. Frames have no words.
    """

    def __init__(self, packer, encoder, labels, input_names=None, word_cutting=None):
        if word_cutting is not None:
            raise ValueError(
                "word_cutting says how texts are cut into words, and the backbone reads frames. "
                "Leave it out."
            )
        super().__init__(packer, encoder, labels, input_names)
        self.word_cutting = None

    def read_columns(self, x, y, sample_weight):
        if not isinstance(x, dict):
            return super().read_columns(x, y, sample_weight)
        rows = Rows.read(self._complete_packed(x), y, sample_weight)
        check_token_shapes(rows)
        return rows

    def read_batch_columns(self, x, y, sample_weight):
        return self.read_columns(x, y, sample_weight)

    def encode(self, labels, inputs):
        encoded = super().encode(labels, inputs)
        if not isinstance(inputs, dict):
            for number, (row, frames) in enumerate(zip(encoded, inputs[0], strict=True)):
                if len(row) != len(frames):
                    raise ValueError(
                        f"Row {number} has {len(frames)} frames and {len(row)} labels. Pass a "
                        "label for each frame."
                    )
        return encoded

    def pack(self, rows, labelled=False):
        if rows.is_packed or rows.labels is None:
            return super().pack(rows, labelled)
        inputs = self.pack_texts(rows.inputs)
        labels = np.full(inputs["padding_mask"].shape, NO_LABEL, "int32")
        for row, own in zip(labels, rows.labels, strict=True):
            row[: len(own)] = own
        return inputs, *self.labels.weigh(labels, rows.weights)


class _OfFrames:
    """What answers for frames do otherwise than those for words. It comes before `WordAnswers`."""

    def decode(self, outputs, rows):
        """list of float32 (n, C), the logits of the frames of each row; of packed arrays all."""
        if rows.is_packed:
            return outputs
        words = self.join(outputs, rows)
        return split_words(words.logits, words.lengths)

    def score(self, outputs, rows, labels, mode="lenient"):
        """dict of scores against the encoded labels of rows; see `score_entities`.

        A run of frames with a label counts as an entity.
        """
        if rows.is_packed:
            return super().score(outputs, rows, labels, mode)
        words = self.join(outputs, rows)
        tags = self.name_labels(self.choose_words(words.logits, words.counts), words.counts)
        true_tags = [[self.labels.names[label] for label in row] for row in labels]
        return score_entities(true_tags, tags, self.labels.names, mode)

    def join(self, outputs, rows):
        if rows.is_packed:
            return super().join(outputs, rows)
        lengths = np.array([len(row) for row in rows.inputs[0]], "int64")
        kept = [output[:length] for output, length in zip(outputs, lengths, strict=True)]
        logits = np.concatenate([np.zeros((0, len(self.labels.names)), "float32"), *kept])
        return WordLogits(logits, lengths, lengths, np.ones(len(logits), bool))

    def list_words(self, rows, number):
        return [None] * number


class FrameTagAnswers(_OfFrames, WordAnswers):
    """Labels of frames, from logits (L, C) for each row."""


class FrameChainAnswers(_OfFrames, ChainAnswers):
    """Labels of frames by the path with the highest score, from emissions (L, C)."""
