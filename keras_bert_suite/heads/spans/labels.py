"""Reads labels that are spans, `(start, end, type)`, and checks them.

In a row of words, a span counts words: `words[start:end]` is the entity. In a text, a span counts
characters: `text[start:end]` is the entity.
"""

import operator

import numpy as np

from keras_bert_suite.heads.base.label_encoding import (
    find_label,
    number_labels,
)
from keras_bert_suite.heads.base.labels import NamedLabels
from keras_bert_suite.heads.tags.tag_schemes import find_entities


def tags_to_spans(tags):
    """Turns the tags of a sentence, in any scheme, into spans.

    >>> tags_to_spans(["B-PER", "I-PER", "O", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    return [(first, end, kind) for kind, first, end in find_entities(tags)]


def read_span(span, row):
    """Reads a span, a triple or an `Entity`, as `(start, end, type)`; start < end."""
    if hasattr(span, "label"):
        span = span.start, span.end, span.label
    try:
        start, end, kind = span
        start, end = operator.index(start), operator.index(end)
        valid = 0 <= start < end
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"A span of row {row} must be (start, end, type), two whole numbers with 0 <= start < "
            f"end and a label, got {str(span)[:60]}. Tags become spans by `tags_to_spans`."
        )
    return start, end, kind.decode() if isinstance(kind, bytes) else kind


def encode_spans(rows, label_names):
    """Turns the spans of rows, with a label name or id each, into arrays without repetitions.

    Object array (N,) of lists -> of int32 arrays (M, 3): start, end and label id.
    """
    id_of = number_labels(label_names)
    encoded = np.empty(len(rows), dtype=object)
    for row, spans in enumerate(rows):
        if spans is None:
            raise ValueError(
                f"The spans of row {row} must be a list of (start, end, type), got None. A row "
                "without entities has the empty list; leave out rows that nobody has labelled."
            )
        triples = set()
        for span in spans:
            start, end, kind = read_span(span, row)
            triples.add((start, end, find_label(kind, id_of, row)))
        encoded[row] = np.array(sorted(triples), "int32").reshape(-1, 3)
    return encoded


def check_span_arrays(spans, label_names):
    """Checks the spans of packed tokens, int32 (N, M, 3): first and last token, and label id.

    A negative first token marks a position without an entity.
    """
    spans = np.asarray(spans)
    valid = spans.ndim == 3 and spans.shape[-1] == 3 and spans.dtype.kind in "iu"
    known = spans[spans[..., 0] >= 0] if valid else np.zeros((0, 3))
    wrong = (known[:, 0] > known[:, 1]) | (known[:, 2] < 0) | (known[:, 2] >= len(label_names))
    if not valid or wrong.any():
        raise ValueError(
            "The labels of packed arrays must be integers (N, M, 3): first token, last token and "
            f"label id in [0, {len(label_names)}) of each entity, got {spans.dtype} of shape "
            f"{spans.shape}: {(known[wrong] if valid else spans).tolist()[:1]}."
        )
    return spans.astype("int32")


class EntitySpans(NamedLabels):
    """Spans `(start, end, type)` of a row. Packed arrays have integers (B, M, 3)."""

    def encode(self, labels):
        """Object array (N,) of int32 arrays (M, 3), or int32 (N, M, 3) for packed arrays."""
        if labels.dtype == object:
            return encode_spans(labels, self.names)
        return check_span_arrays(labels, self.names)
