"""Rows of a source, with the text that is to be written from it."""

import collections
import dataclasses
import warnings

import numpy as np

from keras_bert_suite.data.input_dataset import unpack_only_labels
from keras_bert_suite.data.rows import read_texts
from keras_bert_suite.files.messages import list_names, shorten
from keras_bert_suite.heads.base.frame_data import FrameReader
from keras_bert_suite.heads.base.input_checks import check_inputs
from keras_bert_suite.heads.base.labels import ClassIds
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.targets.rows import FrameRows, JoinedRows, SeparateRows
from keras_bert_suite.tokenizers.plain_marks import PLAIN_MARKS, find_plain_marks, replace_marks
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts


class Targets(ClassIds):
    """A text for each row; for packed arrays the ids of its tokens, int32 (N, P)."""

    def encode(self, labels):
        """Object array (N,) of str; labels of packed arrays stay as they are."""
        if getattr(labels, "dtype", None) is not None and labels.dtype.kind in "iu":
            return labels
        if getattr(labels, "ndim", 1) == 2 and labels.shape[1] == 1:  # Of a DataFrame.
            labels = labels[:, 0]
        return read_texts(labels, "target")


class TargetData(TextData):
    """Rows of a source and a target, for a decoder.

    Of the backbone, numbers of positions are read. `joins_source` and `starts_with_end` are those
    of its `Decoder`, and `max_target_length` is the most tokens that are written. `plain_marks`
    says whether texts have plain marks in the place of unknown ones.
    """

    takes_graphs = False  # Targets are packed in Python.
    needs_segment_packer = True

    #: The `TargetRows` of a decoder that does not join a source and its target.
    separate_rows = SeparateRows

    def __init__(
        self,
        packer,
        encoder,
        input_names,
        *,
        backbone,
        joins_source,
        starts_with_end,
        max_target_length,
        plain_marks,
    ):
        super().__init__(packer, encoder, Targets(), input_names)
        self._backbone = backbone
        self._rows_cls = JoinedRows if joins_source else self.separate_rows
        self._arguments = {} if joins_source else {"starts_with_end": starts_with_end}
        self.max_target_length = max_target_length
        self.plain_marks = plain_marks
        if packer is not None:
            self.target_rows.count_room(max_target_length)

    @property
    def target_rows(self):
        """`TargetRows`, which say how sources and targets are packed for the decoder."""
        self.check_can_pack()
        return self._rows_cls(self.packer, self._backbone, **self._arguments)

    def unpack(self, element):
        return unpack_only_labels(element)

    def read_batch_columns(self, x, y, sample_weight):
        rows = super().read_batch_columns(x, y, sample_weight)
        if rows.is_packed:
            return rows
        inputs = tuple(canonicalize_texts(np.asarray(column))[0] for column in rows.inputs)
        labels = rows.labels
        labels = labels if labels is None else canonicalize_texts(np.asarray(labels))[0]
        return dataclasses.replace(rows, inputs=inputs, labels=labels)

    def order(self, inputs, names):
        if len(inputs) != 1:
            raise ValueError(
                f"A row of a Seq2Seq has one source, got {len(inputs)} columns of texts. Join the "
                "texts of a row. Targets are the labels, `y`."
            )
        return tuple(map(self._replace_marks, super().order(inputs, names)))

    def encode(self, labels, inputs):
        labels = super().encode(labels, inputs)
        return self._replace_marks(labels) if labels.dtype == object else labels

    @property
    def marks(self):
        """dict of marks that the vocabulary lacks -> str that sources and targets have instead."""
        use = self.plain_marks and self.packer is not None
        return find_plain_marks(self.packer.tokenizer) if use else {}

    def check_training(self, rows, batch_size):
        """Warns of words of the targets that the vocabulary lacks, which cannot be written."""
        if rows.is_packed:
            return
        lost, num_targets = _find_unknown_words(self.packer.tokenizer, rows.labels)
        if not lost:
            return
        words = [f"{shorten(repr(word))} ({count})" for word, count in lost.most_common(5)]
        has_marks = not PLAIN_MARKS.keys().isdisjoint(lost) and not self.plain_marks
        warnings.warn(
            f"{num_targets} of {len(rows)} targets have words that the vocabulary lacks, "
            f"{lost.total()} in all, such as {list_names(words)}. They are learned as "
            f"{self.packer.tokenizer.unknown_token}, and `predict` leaves them out. "
            + ("plain_marks=True writes quotes and dashes as the vocabulary has them. " * has_marks)
            + "`add_tokens` of the tokenizer adds other words.",
            stacklevel=2,
        )

    def pack(self, rows, labelled=False):
        """Packs pairs for training, or sources so that the first token of a target is scored."""
        if rows.is_packed:
            check_inputs(rows.inputs, (*self.encoder.names, *self._rows_cls.further_inputs))
            return super().pack(rows)
        if not labelled:
            packed = self.pack_sources(rows.inputs[0], self.max_target_length)
            packed = self.add_columns(packed, rows.features)
            return self.target_rows.begin(packed), None, None
        inputs, labels, weights = self.target_rows.pack(rows.inputs[0], rows.labels)
        inputs = self.add_columns(inputs, rows.features)
        if rows.weights is not None:
            weights = weights * np.reshape(rows.weights, (-1, 1)).astype("float32")
        return inputs, labels, weights

    def pack_sources(self, sources, max_target_length):
        """dict of int32 (B, L), the inputs of the encoder, with room for a target."""
        return self.encoder.select(self.target_rows.pack_texts(sources, max_target_length))

    def _replace_marks(self, texts):
        marks = self.marks
        return replace_marks(texts, marks) if marks else texts


class FrameTargetData(FrameReader, TargetData):
    """Rows of frames with the text that is to be written of them. Arguments: as `TargetData`."""

    needs_segment_packer = False
    separate_rows = FrameRows

    def check_can_pack(self):
        super().check_can_pack()
        if self.packer.tokenizer is None:
            raise ValueError(
                "A Seq2Seq on frames writes texts, and its FramePacker has no tokenizer. Pass "
                f"FramePacker({self.encoder.frame_dim}, tokenizer=...), with that of the decoder."
            )


def _find_unknown_words(tokenizer, texts):
    """(Counter of the words that are unknown, the number of texts with such a word)."""
    unknown = tokenizer.unknown_token_id
    ids, lengths = tokenizer.tokenize_flat(list(texts))
    rows = np.repeat(np.arange(len(lengths)), lengths)[ids == unknown]
    lost = collections.Counter()
    numbers = np.unique(rows)
    for number in numbers:
        found, offsets, _ = tokenizer.tokenize_with_offsets(texts[number])
        lost.update(
            texts[number][start:end]
            for token, (start, end) in zip(found, offsets, strict=True)
            if token == unknown
        )
    return lost, len(numbers)
