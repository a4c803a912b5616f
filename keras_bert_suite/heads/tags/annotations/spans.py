"""Finds the place of each span in its text, and the faults of a span."""

from keras_bert_suite.data.readers.text_places import find_nearest
from keras_bert_suite.heads.tags.annotations.offsets import is_same
from keras_bert_suite.heads.tags.tag_forms import OUTSIDE

#: The faults of a span.
NO_LABEL = "a span without a label"
NOT_WITHIN = "a span that is empty or not within its text"
BLANK = "a span of spaces alone"
SPACES = "a span with spaces at its border"
ELSEWHERE = "a span whose text is elsewhere"
NOWHERE = "a span whose text is nowhere"
IN_PIECES = "a span of several pieces"
CUT = "a span that cuts through a word"
OVERLAPPING = "a span that overlaps another"

#: The faults of a text.
DISAGREED = "annotators who disagree"


def place_span(text, span, ruler):
    """Finds the place of a span.

    Args:
        text: str.
        span: `MarkedSpan`.
        ruler: `Ruler` of the text.

    Returns:
        `(place, problem)`: (start, end) with text in it, or None if there is no such place; and the
        fault of the span in the file, or None.
    """
    place = ruler.find(span.start, span.end)
    if span.label in (None, OUTSIDE):
        return None, NO_LABEL
    if any(text[slice(*(ruler.find(*gap) or (0, 0)))].strip() for gap in span.gaps):
        return None, IN_PIECES
    if span.text is not None and not (place and is_same(text[slice(*place)], span.text)):
        start = find_nearest(span.text, place[0] if place else span.start, text)
        place = (start, start + len(span.text)) if start >= 0 else None
        return place and _trim(text, place), NOWHERE if place is None else ELSEWHERE
    if place is None:
        return None, NOT_WITHIN
    trimmed = _trim(text, place)
    if trimmed is None:
        return None, BLANK
    return trimmed, None if trimmed == place else SPACES


def find_overlapping(places):
    """The places that overlap a longer one, or an equal one before them: set of their numbers.

    >>> sorted(find_overlapping([(0, 2), (0, 5), (4, 6), (6, 7), (0, 5)]))
    [0, 2, 4]
    """
    kept, overlapping = [], set()
    order = sorted(range(len(places)), key=lambda n: places[n][0] - places[n][1])
    for number in order:
        start, end = places[number]
        if any(start < other_end and other < end for other, other_end in kept):
            overlapping.add(number)
        else:
            kept.append(places[number])
    return overlapping


def describe(problem, label, text, place, span=None, whole=(0, 0)):
    """Says the fault of a span, for a message.

    Args:
        problem: str, from `place_span` or above.
        label: str or None.
        text: str.
        place: `(start, end)` in the text, or None.
        span: `MarkedSpan`, if its place in the file may differ.
        whole: `(start, end)`, the place of the words that it touches.
    """
    start, end = (span.start, span.end) if span else place
    part = repr(text[slice(*place)][:40]) if place else None
    wanted = repr((span and span.text or "")[:40])
    problems = {
        NO_LABEL: "has no label of an entity. Give it one, or remove it.",
        NOT_WITHIN: f"is empty or not within its text, which has {len(text)} characters.",
        BLANK: "holds nothing but spaces.",
        SPACES: f"has spaces at its border. Without them it is {part}.",
        ELSEWHERE: f"should have the text {wanted}, which is at {place}.",
        NOWHERE: f"should have the text {wanted}, which is nowhere in its text.",
        CUT: f"is {part} and cuts through a word, {text[slice(*whole)][:40]!r}.",
        OVERLAPPING: f"is {part} and overlaps another span, and a word has one tag. An "
        'EntitySpanClassifier takes such spans: scheme="spans", or no scheme.',
    }
    return f"the span {start} to {end} with the label {label!r} {problems[problem]}"


def _trim(text, place):
    start, end = place
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    end -= len(part) - len(part.rstrip())
    return (start, end) if start < end else None
