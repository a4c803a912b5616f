"""Cuts contexts into windows, each with its question before it, and finds their answers in them."""

import dataclasses
import re
import warnings

import numpy as np

from keras_bert_suite.data.rows import Rows
from keras_bert_suite.data.word_rows import as_column
from keras_bert_suite.preprocessing.packing import NUMPY
from keras_bert_suite.preprocessing.windows import (
    choose_stride,
    share_strided_windows,
    slide_windows,
)
from keras_bert_suite.tokenizers.row_template import RowTemplate
from keras_bert_suite.tokenizers.text_inputs import decode_text


@dataclasses.dataclass(frozen=True)
class ContextTokens:
    """A context and its T tokens.

    Attributes:
        ids: int32 (T,).
        starts, ends: int32 (T,), the characters that each token was made from.
        is_blank: bool (T,), whether a token is white space. No answer begins or ends with it.
    """

    text: str
    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    is_blank: np.ndarray

    def find_tokens(self, span):
        """The (first, last) token of a span of characters, or None if it has no token."""
        inside = (self.starts < span[1]) & (self.ends > span[0]) & ~self.is_blank
        tokens = np.flatnonzero(inside)
        return (tokens[0], tokens[-1]) if len(tokens) else None


@dataclasses.dataclass(frozen=True)
class QuestionWindows(Rows):
    """N windows over the contexts of B questions.

    `inputs` are two object arrays (N,) of int32 arrays, the tokens of the question and of the
    window. `labels` int32 (N, 2) are the first and the last token of the answer in the packed row.
    They are the position of the summary token, [CLS], if the answer is not in the window. Positions
    are counted from the origin of the row, see `RowTemplate`.

    Attributes:
        contexts: list of B `ContextTokens`.
        begins: int32 (N,), the index of the window's first token in its context.
        template: `RowTemplate` of the packed rows.
        own_starts, own_ends: int32 (N,), the range of the window's tokens at which its answers may
            begin.
    """

    contexts: list | None = None
    begins: np.ndarray | None = None
    template: RowTemplate | None = None
    own_starts: np.ndarray | None = None
    own_ends: np.ndarray | None = None

    def find_positions(self, window, row_length):
        """The positions of a window's first token and of the summary token in its packed row."""
        lengths = [len(column[window]) for column in self.inputs]
        origin = self.template.find_origin(row_length)
        return origin + self.template.find_text(lengths), origin + self.template.find_summary(
            lengths
        )


def cut_question_windows(packer, rows, stride, query_length):
    """Cuts the contexts of rows into `QuestionWindows` that the packer has room for.

    `rows` have spans of characters as labels, or none. `SegmentPacker.pack_windows` explains the
    stride and the query length. An answer without a token is a ValueError.
    """
    questions, texts = rows.inputs
    stride, query_length, budget = find_room(packer, stride, query_length)
    tokenize = _ContextTokenizer(packer.tokenizer)
    contexts = [tokenize(decode_text(text)) for text in texts]
    ids, lengths = packer.tokenizer.tokenize_flat(list(questions))
    lengths = NUMPY.cast(lengths)
    question = (None, np.cumsum(lengths, dtype="int32") - lengths, lengths)
    context_lengths = np.array([len(context.ids) for context in contexts], "int32")
    (question, window), row_ids = slide_windows(
        NUMPY,
        [question, (None, np.zeros_like(context_lengths), context_lengths)],
        budget,
        stride,
        query_length,
    )
    _, question_starts, question_lengths = question
    _, begins, window_lengths = window
    own_starts, own_ends = share_strided_windows(NUMPY, begins, window_lengths, row_ids)
    inputs = (
        as_column(
            ids[start : start + n]
            for start, n in zip(question_starts, question_lengths, strict=True)
        ),
        as_column(
            contexts[row].ids[begin : begin + n]
            for row, begin, n in zip(row_ids, begins, window_lengths, strict=True)
        ),
    )
    windows = QuestionWindows(
        inputs,
        weights=None if rows.weights is None else np.asarray(rows.weights)[row_ids],
        contexts=contexts,
        sources=row_ids,
        begins=begins,
        template=packer.row_template,
        own_starts=own_starts,
        own_ends=own_ends,
    )
    if rows.labels is None:
        return windows
    labels = _locate_answers(windows, [question_lengths, window_lengths], rows.labels)
    return dataclasses.replace(windows, labels=labels)


def find_room(packer, stride, query_length):
    """(stride; query_length; the positions of a row for a question and a window of its context)."""
    budget = packer.count_places(2)
    return *choose_stride(packer.sequence_length, budget, 1, stride, query_length), budget


class _ContextTokenizer:
    """Tokenizes each context once. The questions of a paragraph share one context."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        blank_words = tokenizer.blank_words  # "" for tokens without a character
        self._blank = re.compile("(?!)" if blank_words is None else blank_words)
        self._known = {}

    def __call__(self, text):
        if text not in self._known:
            ids, offsets, _ = self._tokenizer.tokenize_with_offsets(text)
            starts, ends = np.array(offsets, "int32").reshape(-1, 2).T
            is_blank = [bool(self._blank.fullmatch(text, *span)) for span in offsets]
            self._known[text] = ContextTokens(
                text, np.array(ids, "int32"), starts, ends, np.array(is_blank, bool)
            )
        return self._known[text]


def _locate_answers(windows, lengths, spans):
    """int32 (N, 2), the first and last token of the answers in the packed rows of the windows.

    `lengths` are two int32 (N,), of the questions and of the windows.
    """
    tokens = np.full((len(spans), 2), -1, "int32")
    for row, (span, context) in enumerate(zip(spans, windows.contexts, strict=True)):
        if span[0] < 0:
            continue
        found = context.find_tokens(span)
        if found is None:
            raise ValueError(
                f"The answer of row {row}, {context.text[slice(*span)][:40]!r}, has no token: the "
                "tokenizer drops its characters. Leave the row out."
            )
        tokens[row] = found
    first, last = tokens[windows.sources].T - windows.begins
    is_inside = (first >= 0) & (last < lengths[1])
    _warn_of_unseen(tokens, np.unique(windows.sources[is_inside]), lengths)
    text, summary = (
        np.broadcast_to(find(lengths), len(first))[:, None]
        for find in (windows.template.find_text, windows.template.find_summary)
    )
    positions = text + np.stack([first, last], axis=1)
    return np.where(is_inside[:, None], positions, summary).astype("int32")


def _warn_of_unseen(tokens, seen, lengths):
    """Warns of answers that no window holds. `seen` are the rows whose answer is in a window."""
    has_answer = tokens[:, 0] >= 0
    has_answer[seen] = False
    unseen = np.flatnonzero(has_answer)
    if len(unseen):
        row = unseen[0]
        warnings.warn(
            f"{len(unseen)} of {len(tokens)} answers are in no window as a whole, so all windows "
            'of these questions are labelled "no answer", such as the answer of row '
            f"{row} that is {tokens[row, 1] - tokens[row, 0] + 1} tokens long. The longest window "
            f"has {lengths[1].max()} tokens of a context. Raise the preprocessor's "
            "sequence_length, lower the stride of the task, or leave the rows out.",
            stacklevel=2,
        )
