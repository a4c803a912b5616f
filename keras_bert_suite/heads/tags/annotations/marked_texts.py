"""Texts with marked spans, as the file of an annotation tool has them."""

import contextlib
import dataclasses
from typing import Any

from keras_bert_suite.data.readers.json_values import read_integer
from keras_bert_suite.data.readers.text_files import split_lines


@dataclasses.dataclass(frozen=True)
class MarkedSpan:
    """A span of a text, as the file counts.

    Attributes:
        start, end: int.
        label: str, or None if the file gives it none.
        text: str, the text of the span by the file; None if the file does not have it.
        gaps: tuple of `(start, end)`, the parts between the pieces of a span of several pieces.
    """

    start: int
    end: int
    label: str | None
    text: str | None = None
    gaps: tuple = ()


@dataclasses.dataclass(frozen=True)
class MarkedText:
    """A text and its spans.

    Attributes:
        text: str.
        spans: list of `MarkedSpan`.
        name: str or int, its name in messages and in `Examples`: its id, else its line, else its
            number from 0.
        where: str, its place for a message, without the path: "line 7" or "id 12".
        id: str or None.
        line: int or None.
        task: the common id of the texts of several annotators, or None.
    """

    text: str
    spans: list
    name: Any
    where: str
    id: str | None = None
    line: int | None = None
    task: Any = None


@dataclasses.dataclass(frozen=True)
class Record:
    """A part of a file: its content, its line or None, and its number from 0."""

    content: Any
    line: int | None
    number: int

    def mark(self, text, spans, id=None, task=None):
        """A `MarkedText` of the text and the spans of the record."""
        if not isinstance(text, str):
            raise TypeError(f"the text is {str(text)[:40]!r}")
        for part in (id, task):
            if not isinstance(part, str | int | float | None):
                raise TypeError(f"the id is {str(part)[:40]!r}")
        id = None if id is None else str(id)
        name = next(part for part in (id, self.line, self.number) if part is not None)
        return MarkedText(text, spans, name, self.describe(id), id, self.line, task)

    def describe(self, id=None):
        """Where the record is, as text: "line 7"."""
        if self.line is not None:
            return f"line {self.line}"
        return f"row {self.number}" if id is None else f"id {id}"


@dataclasses.dataclass
class MarkedFile:
    """The content of a file.

    Attributes:
        path: str.
        form: str, the wanted content of the file, for messages.
        texts: list of `MarkedText`.
        left_out: dict of a reason -> list of names of texts that were not read.
    """

    path: str
    form: str
    texts: list = dataclasses.field(default_factory=list)
    left_out: dict = dataclasses.field(default_factory=dict)

    def leave_out(self, reason, name):
        self.left_out.setdefault(reason, []).append(name)

    @contextlib.contextmanager
    def reading(self, record):
        """Says where an error of the form is."""
        try:
            yield
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise ValueError(
                f"{self.path}, {record.describe()}: wanted {self.form}, and got "
                f"{type(error).__name__}: {str(error)[:200]}."
            ) from None


def list_lines(text):
    """Numbers, from 1, and lines that are not blank."""
    return [(number, line) for number, line in enumerate(split_lines(text), 1) if line.strip()]


def read_spans(start, end, labels, text=None, gaps=()):
    """The spans of one place, list of `MarkedSpan`: one for each label.

    >>> read_spans(0, "3", ["PER", "ORG"])[1]
    MarkedSpan(start=0, end=3, label='ORG', text=None, gaps=())

    Args:
        start, end: int, or a whole number in another form.
        labels: str, int or None, or a list of them.
        text, gaps: as for `MarkedSpan`.

    Raises:
        TypeError, ValueError: if they have other types.
    """
    if not (isinstance(text, str) or text is None):
        raise TypeError(f"the text of a span is {str(text)[:40]!r}")
    names = [_read_label(label) for label in labels] if isinstance(labels, list) else None
    names = [_read_label(labels)] if names is None else names or [None]
    start, end = (read_integer("a place", place) for place in (start, end))
    return [MarkedSpan(start, end, name, text, gaps) for name in names]


def _read_label(label):
    if isinstance(label, bool) or not isinstance(label, str | int | None):
        raise TypeError(f"a label is {str(label)[:40]!r}")
    name = "" if label is None else str(label).strip()
    return name or None
