"""Reads the labels of questions: the position of each answer in its context."""

import numpy as np

from keras_bert_suite.data.arrays import as_array, leave_tensorflow, name_columns
from keras_bert_suite.heads.questions.squad_answers import describe_misplaced
from keras_bert_suite.tokenizers.text_inputs import decode_text

#: The span of a question without an answer.
NO_ANSWER = (-1, -1)

_FORMS = (
    "(start, end) in characters of the context, (-1, -1) for a question without an answer; or a "
    'dict {"text": ..., "answer_start": ...} as SQuAD has it'
)


def read_answer_spans(labels, contexts):
    """Reads the span of the answer to each question. If there are several, the first answer counts.

    An answer whose `answer_start` is -1 does not count if there is another answer.

    >>> read_answer_spans([{"text": "seas", "answer_start": 4}, (-1, -1)], ["Two seas.", "A sea."])
    array([[ 4,  8], [-1, -1]], dtype=int32)

    Args:
        labels: N entries, each `(start, end)` or a dict of SQuAD; an integer array (N, 2); a tuple
            of two columns, starts and ends; or a DataFrame or dict with the columns `text` and
            `answer_start`. An eager tensor is taken too.
        contexts: N str or bytes.

    Returns:
        int32 (N, 2), `context[start:end]` is the answer; -1 and -1 for no answer.
    """
    contexts = list(map(decode_text, contexts))
    rows = zip(_read_rows(labels, len(contexts)), contexts, strict=True)
    spans = [_read_span(row, context, number) for number, (row, context) in enumerate(rows)]
    return np.array(spans, "int32").reshape(-1, 2)


def read_accepted_answers(labels, contexts):
    """The texts of all accepted answers to each question, list of N lists of str.

    Arguments: see `read_answer_spans`. The texts of a dict may be anywhere.
    """
    contexts = list(map(decode_text, contexts))
    answers = []
    for number, row in enumerate(_read_rows(labels, len(contexts))):
        if isinstance(row, dict):
            answers.append([text for text, _ in _read_dict(row, number)])
        else:
            start, end = _read_pair(row, contexts[number], number)
            answers.append([] if (start, end) == NO_ANSWER else [contexts[number][start:end]])
    return answers


def check_token_spans(labels, shape):
    """Checks the first and the last token of each answer of packed arrays of shape (N, L).

    The result is int32 (N, 2).
    """
    labels = np.asarray(labels)
    valid = labels.shape == (shape[0], 2) and labels.dtype.kind in "iu"
    if not valid or not np.all(
        np.diff(labels.astype("int64"), prepend=0, append=shape[1] - 1) >= 0
    ):
        raise ValueError(
            f"The labels of packed arrays must be integers ({shape[0]}, 2), the first and the last "
            f"token of each answer, from 0, [CLS] for no answer, to {shape[1] - 1}, got "
            f"{labels.dtype} of shape {labels.shape}: {str(labels)[:200]}."
        )
    return labels.astype("int32")


def _read_rows(labels, num_rows):
    """Labels as a list of N entries."""
    labels = leave_tensorflow(name_columns(labels))
    if isinstance(labels, dict):
        columns = zip(labels["text"], labels["answer_start"], strict=True)
        rows = [{"text": text, "answer_start": start} for text, start in columns]
    elif _are_two_columns(labels):
        rows = list(zip(*(as_array(column).tolist() for column in labels), strict=True))
    else:
        rows = list(labels)
    if len(rows) != num_rows:
        raise ValueError(
            f"Wanted a label for each of {num_rows} questions, got {len(rows)}: {_FORMS}."
        )
    return rows


def _are_two_columns(labels):
    """Whether labels are a tuple of two columns, which PyTorch's `default_collate` makes a list."""
    if not isinstance(labels, (tuple, list)) or len(labels) != 2:
        return False
    if isinstance(labels, tuple) and all(isinstance(column, list) for column in labels):
        return True
    return all(hasattr(column, "ndim") and column.ndim == 1 for column in labels) and (
        isinstance(labels, tuple) or all(hasattr(column, "detach") for column in labels)
    )


def _read_span(row, context, number):
    """The span of the first answer of a label, `(start, end)`."""
    if not isinstance(row, dict):
        return _read_pair(row, context, number)
    answers = _read_dict(row, number)
    if not answers:
        return NO_ANSWER
    placed = [(text, start) for text, start in answers if start >= 0]
    text, start = (placed or answers)[0]
    problem = describe_misplaced(text, start, context)
    if problem:
        raise ValueError(f"Row {number}: {problem}")
    return start, start + len(text)


def _read_pair(row, context, number):
    try:
        start, end = (int(place) for place in row if place == int(place))
        valid = (start, end) == NO_ANSWER or 0 <= start < end <= len(context)
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"The label of row {number} is {str(row)[:60]!r}, wanted {_FORMS}. The context has "
            f"{len(context)} characters."
        )
    return start, end


def _read_dict(row, number):
    """The answers of a dict of SQuAD, list of `(text, start)`."""
    texts, starts = row.get("text"), row.get("answer_start")
    if isinstance(texts, (str, bytes)):
        texts, starts = [texts], [starts]
    texts, starts = ([] if values is None else list(values) for values in (texts, starts))
    texts = [decode_text(text) for text in texts]
    try:
        starts = [int(start) for _, start in zip(texts, starts, strict=True)]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Row {number} has {len(texts)} answers in 'text' and the 'answer_start' "
            f"{str(starts)[:60]}, wanted the first character of each answer."
        ) from None
    if texts == [""] and starts[0] < 0:  # In a column of texts this means no answer.
        return []
    return list(zip(texts, starts, strict=True))
