"""The unit of the places of a file, and their places in a Python string.

A file does not name its unit. JavaScript counts UTF-16 code units: an emoji is two. Browsers and
Python's text files make one character of the two that end a line on Windows. In some files the end
is the last character of a span, and not the place after it. The texts of spans say which, where a
file has them; where not, the borders of words do.
"""

#: The units of places -> their names in a message, after "places that count".
OFFSETS = {
    "characters": "characters, as Python does",
    "utf16": "UTF-16 code units, of which an emoji has two",
    "newlines": "the two characters of a line end of Windows as one",
    "inclusive": "characters, with the last one of a span as its end",
}


class Ruler:
    """Turns places as a file counts them into places of a text.

    >>> Ruler("\\U0001f600 Rome", "utf16").find(3, 7)
    (2, 6)

    Args:
        text: str.
        offsets: a key of `OFFSETS`.
    """

    def __init__(self, text, offsets):
        self._places, self._length = _count(text, offsets), len(text)
        self._shift = int(offsets == "inclusive")

    def find(self, start, end):
        """(start, end) in the text with start < end, or None where there is no such part of it."""
        start, end = (self._find(place) for place in (start, end + self._shift))
        return (start, end) if None not in (start, end) and start < end else None

    def counts_as(self, other):
        """Whether another ruler of the same text has the same places."""
        return (self._places, self._shift) == (other._places, other._shift)

    def _find(self, place):
        if self._places is None:
            return place if 0 <= place <= self._length else None
        return self._places.get(place)


def _count(text, offsets):
    """dict of a place in the file -> the place in the text; None if they are the same."""
    if offsets == "utf16" and max(text, default="") > "\uffff":
        widths = [1 + (character > "\uffff") for character in text]
    elif offsets == "newlines" and "\r\n" in text:
        widths = [int(text[place : place + 2] != "\r\n") for place in range(len(text))]
    else:
        return None
    places, count = {}, 0
    for place, width in enumerate(widths):
        places.setdefault(count, place)
        count += width
    places.setdefault(count, len(text))
    return places


def is_same(part, text):
    """Whether a part equals the text in a file. Tools write spaces for line ends."""
    return part.split() == text.split()


def fits(text, place, span):
    """Whether a place of a text may be the place of a span.

    Args:
        text: str.
        place: `(start, end)` or None.
        span: `MarkedSpan`. Without its text, it should begin and end at a word's border.
    """
    if place is None:
        return False
    part = text[slice(*place)]
    if span.text is not None:
        return is_same(part, span.text)
    is_stripped = part == part.strip() != ""
    return is_stripped and not any(cuts_word(text, border) for border in place)


def cuts_word(text, place):
    """Whether a place of a text is within a word, between two letters that have case, or digits.

    Other scripts write particles beside a name, as Korean does, or no spaces.

    >>> cuts_word("Rome", 2), cuts_word("Rome", 4), cuts_word("서울에", 2)
    (True, False, False)
    """
    beside = text[place - 1 : place + 1] if place else ""
    return len(beside) == 2 and all(c.lower() != c.upper() or c.isdigit() for c in beside)


def choose_offsets(texts, usual):
    """Finds the unit of the places of a file.

    Args:
        texts: list of `MarkedText`.
        usual: tuple of keys of `OFFSETS`, the possible units of the tool. The first is the default.

    Returns:
        `(offsets, is_certain)`: a key of `OFFSETS`, and whether the file leaves no doubt. There is
        doubt if two of `usual` give some spans other places, and no texts of spans say which of the
        two is right.
    """
    choice, gain, is_certain = usual[0], 0, True
    for offsets in OFFSETS:
        moved = list_moved(texts, usual[0], offsets)
        fit = [
            (fits(text.text, before, span), fits(text.text, after, span), bool(span.gaps))
            for text, span, before, after in moved
        ]
        pro = sum(then and not now for now, then, _ in fit)
        con = sum(now and not then for now, then, _ in fit)
        # The text of a span of several pieces is at neither place.
        judged = len(fit) - sum(has_gaps and not now and not then for now, then, has_gaps in fit)
        speaks_for = 2 * pro > judged and pro > 4 * con
        speaks_against = 2 * con > judged and con > 4 * pro
        if speaks_for and pro - con > gain:
            choice, gain = offsets, pro - con
        if offsets in usual and not speaks_against:
            is_certain &= all(span.text is not None for _, span, _, _ in moved)
    return choice, is_certain


def list_moved(texts, before, after):
    """The spans that have another place if the file counts otherwise.

    Returns:
        list of `(text, span, place, other place)`: `MarkedText`, `MarkedSpan`, and the result of
        `Ruler.find`.
    """
    moved = []
    for text in texts:
        rulers = [Ruler(text.text, offsets) for offsets in (before, after)]
        if rulers[0].counts_as(rulers[1]):
            continue
        for span in text.spans:
            places = [ruler.find(span.start, span.end) for ruler in rulers]
            if places[0] != places[1]:
                moved.append((text, span, *places))
    return moved
