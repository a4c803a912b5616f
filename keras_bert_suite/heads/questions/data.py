"""Rows of a question and a context, with the span of the answer; long contexts become windows."""

import dataclasses

import numpy as np

from keras_bert_suite.data.arrays import leave_tensorflow
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.heads.base.input_checks import check_in_memory
from keras_bert_suite.heads.base.labels import ClassIds
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.questions.answer_spans import (
    check_token_spans,
    read_accepted_answers,
    read_answer_spans,
)
from keras_bert_suite.heads.questions.windows import cut_question_windows


class QuestionData(TextData):
    """Rows of a question and a context. The label of a row is the span of its answer.

    Args:
        packer, encoder, input_names: as for `TextData`.
        stride, query_length: as for `QuestionAnswerer`.
        no_answer_threshold: float, the `null_odds` above which a question has no answer; None if
            every question has an answer.
    """

    takes_graphs = False  # Contexts are cut into windows in Python.
    needs_segment_packer = True

    def __init__(
        self, packer, encoder, input_names, *, stride, query_length, no_answer_threshold=None
    ):
        super().__init__(packer, encoder, ClassIds(), input_names)
        self.stride = stride
        self.query_length = query_length
        self.no_answer_threshold = no_answer_threshold

    def check_changed(self, columns, names):
        names = self.input_names if {*names} == {*(self.input_names or ())} else names
        if any(name in columns for name in names[1:]):
            raise ValueError(
                "The answer to a question is a place in its context, which changed characters "
                "would move. Change the questions alone: leave the context as it is."
            )

    def read_columns(self, x, y, sample_weight):
        if isinstance(x, list) and not x:
            x = ([], [])
        return dataclasses.replace(Rows.read(x, None, sample_weight), labels=y)

    def read_batch_columns(self, x, y, sample_weight):
        rows = Rows.read_batch(x, None, sample_weight)
        inputs = leave_tensorflow(rows.inputs)
        return Rows(inputs, y, rows.weights, rows.input_names)

    def read_accepted(self, x, y):
        """list of lists of str, the accepted answers to rows in memory."""
        check_in_memory(x)
        rows = self.read(x)
        if rows.is_packed:
            raise ValueError(
                "Packed arrays have no text, so their answers have no score. Pass questions and "
                "contexts, or call `evaluate`."
            )
        return read_accepted_answers(y, rows.inputs[1])

    def window(self, rows):
        """`QuestionWindows` over rows; see `cut_question_windows`."""
        if rows.is_packed:
            return rows
        self.check_can_pack()
        return cut_question_windows(self.packer, rows, self.stride, self.query_length)

    def pack(self, rows, labelled=False):
        inputs, labels = rows.inputs, rows.labels
        if not rows.is_packed:
            questions, windows = map(_join, inputs)
            packed = self.packer.pack_tokens(*windows, queries=[questions])
            inputs = self.encoder.select(packed)
            if labels is not None:
                length = packed["token_ids"].shape[1]
                labels = labels + self.packer.row_template.find_origin(length)
        weights = rows.weights
        if weights is not None:
            weights = np.reshape(weights, (-1, 1))  # for the start and the end
        return inputs, labels, weights

    def order(self, inputs, names):
        if len(inputs) != 2:
            raise ValueError(
                "A row is a question and a context, got rows of "
                f"{len(inputs)} texts. Pass a tuple of two columns, (questions, contexts)."
            )
        return super().order(inputs, names)

    def encode(self, labels, inputs):
        """int32 (N, 2): characters of contexts, or tokens of packed arrays."""
        if isinstance(inputs, dict):
            return check_token_spans(labels, np.shape(next(iter(inputs.values()))))
        spans = read_answer_spans(labels, inputs[1])
        unanswerable = np.flatnonzero(spans[:, 0] < 0)
        if len(unanswerable) and self.no_answer_threshold is None:
            raise ValueError(
                f"Row {unanswerable[0]} has no answer, and this task answers every question. Set "
                "its no_answer_threshold to 0.0, or pass it to `from_preset`. After training, "
                "`tune_threshold` finds a better value."
            )
        return spans


def _join(column):
    """(ids int32 (T,), starts int32 (N,), lengths int32 (N,)) of N arrays of ids."""
    lengths = np.array([len(row) for row in column], "int32")
    return (
        np.concatenate([np.zeros(0, "int32"), *column]),
        np.cumsum(lengths, dtype="int32") - lengths,
        lengths,
    )
