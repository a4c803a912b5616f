"""Reads labels that are spans, `(start, end, type)`, and checks them.

In a row of words, a span counts words: `words[start:end]` is the entity. In a text, a span counts
characters: `text[start:end]` is the entity.
"""

import operator

import numpy as np

from keras_bert_suite.data.tag_schemes import find_entities


def tags_to_spans(tags):
    """Turns the tags of a sentence, in any scheme, into spans.

    >>> tags_to_spans(["B-PER", "I-PER", "O", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    return [(first, end, kind) for kind, first, end in find_entities(tags)]


def read_span(span, row):
    """Reads a span, a triple or an `Entity`, as `(start, end, type)`.

    Raises:
        ValueError: if `span` is neither, or its positions are not whole numbers with start < end,
            naming the row.
    """
    if hasattr(span, "label"):
        span = span.start, span.end, span.label
    try:
        start, end, kind = span
        start, end = operator.index(start), operator.index(end)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A span of row {row} must be (start, end, type), two whole numbers and a label, got "
            f"{str(span)[:60]}. Tags become spans by `tags_to_spans`."
        ) from error
    if not 0 <= start < end:
        raise ValueError(
            f"A span of row {row} must have 0 <= start < end, got start {start} and end {end}. "
            "`end` is the position after the last word or character."
        )
    return start, end, kind.decode() if isinstance(kind, bytes) else kind


def encode_spans(rows, label_names):
    """Turns the spans of rows into arrays.

    Args:
        rows: object array (N,) of lists of spans, each with a label name or a label id.
        label_names: list of C names.

    Returns:
        object array (N,) of int32 arrays (M, 3): start, end and label id, without repetitions.

    Raises:
        ValueError: if `read_span` refuses a span, or the label of a span is unknown, naming the
            row.
    """
    id_of = {name: i for i, name in enumerate(label_names)}
    id_of.update({i: i for i in range(len(label_names))})
    encoded = np.empty(len(rows), dtype=object)
    for row, spans in enumerate(rows):
        triples = set()
        for span in spans:
            start, end, kind = read_span(span, row)
            if kind not in id_of:
                raise ValueError(
                    f"Label {str(kind)[:40]!r} of a span of row {row} is not one of the labels "
                    f"{list(label_names)[:20]}, nor a label id. Correct it, or build the task with "
                    "`label_names` that include it."
                )
            triples.add((start, end, id_of[kind]))
        encoded[row] = np.array(sorted(triples), "int32").reshape(-1, 3)
    return encoded


def check_span_arrays(spans, label_names):
    """Checks the spans of packed tokens.

    Args:
        spans: array of integers (N, M, 3): the first and the last token of an entity, and its
            label id. A negative first token marks a position without an entity.
        label_names: list of C names.

    Returns:
        int32 (N, M, 3).

    Raises:
        ValueError: if `spans` has another shape or no integers, or a number is out of range.
    """
    spans = np.asarray(spans)
    if spans.ndim != 3 or spans.shape[-1] != 3 or spans.dtype.kind not in "iu":
        raise ValueError(
            "The labels of packed arrays must be integers (N, M, 3): first token, last token and "
            f"label id of each entity, got {spans.dtype} of shape {spans.shape}."
        )
    known = spans[spans[..., 0] >= 0]
    wrong = (known[:, 0] > known[:, 1]) | (known[:, 2] < 0) | (known[:, 2] >= len(label_names))
    if wrong.any():
        raise ValueError(
            f"A span of packed arrays must have first <= last, and a label id in [0, "
            f"{len(label_names)}), got {known[wrong][0].tolist()}."
        )
    return spans.astype("int32")
