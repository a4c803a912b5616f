"""Reads the standoff files of BRAT: DOC.txt with the text, and DOC.ann with its annotations.

Source: https://brat.nlplab.org/standoff.html.
"""

import re
from pathlib import Path

from keras_bert_suite.data.readers.text_files import read_text
from keras_bert_suite.heads.tags.annotations.json_texts import UNLABELLED
from keras_bert_suite.heads.tags.annotations.marked_texts import Record, list_lines, read_spans

#: For messages.
FORM = "BRAT's text in DOC.txt, with its spans in DOC.ann"

#: The unit of the places: as Python's text files have it, or as in the file.
OFFSETS = ("newlines", "characters")

#: The other kinds of lines, by the first character of the id.
_OTHERS = {
    "R": "a relation",
    "E": "an event",
    "A": "an attribute",
    "M": "an attribute",
    "N": "a normalization",
    "*": "an equivalence",
    "#": "a note",
}

#: T1, a tab, the type and places such as "0 5;16 23", and the text, which may be missing.
_SPAN = re.compile(r"T\S*\t(\S+) (\d+ \d+(?:;\d+ \d+)*) *(?:\t(.*))?")


def is_brat(path):
    """Whether a path is of BRAT: a folder, or one of the two files of a text."""
    path = Path(path).expanduser()
    is_text = path.suffix == ".txt" and path.with_suffix(".ann").is_file()
    return path.is_dir() or path.suffix == ".ann" or is_text


def read_brat(path, encoding, file):
    """Reads a text and its annotations, or a folder of them, into a `MarkedFile`.

    Raises:
        ValueError: if a text or its annotations are missing, or if a line has another form.
    """
    path = Path(path).expanduser()
    names = sorted(path.rglob("*.ann")) if path.is_dir() else [path.with_suffix(".ann")]
    if path.is_dir():
        with_text = {name.with_suffix(".txt") for name in names}
        for text in sorted(set(path.rglob("*.txt")) - with_text):
            file.leave_out(UNLABELLED, text.relative_to(path).as_posix())
    if not names:
        raise ValueError(f"{path} has no files that end in .ann. Wanted {file.form}.")
    for number, name in enumerate(names):
        text = name.with_suffix(".txt")
        if not text.is_file():
            raise ValueError(f"{name} has no text beside it. Wanted the file {text.name}, too.")
        id = name.relative_to(path) if path.is_dir() else Path(name.name)
        record = Record(None, None, number)
        spans = _read_lines(read_text(name, encoding), name, id.as_posix(), file)
        id = id.with_suffix("").as_posix()
        file.texts.append(record.mark(read_text(text, encoding), spans, id))


def _read_lines(content, path, name, file):
    spans = []
    for number, line in list_lines(content):
        if other := _OTHERS.get(line[0]):
            file.leave_out(other, f"{name}, line {number}")
            continue
        match = _SPAN.fullmatch(line)
        if match is None:
            raise ValueError(
                f"{path}, line {number}: got {line[:60]!r}, wanted a span such as "
                r"'T1\tPER 0 5\tMarie', with tabs around the type and the places. Correct the line."
            )
        kind, pieces, text = match.groups()
        places = [tuple(map(int, piece.split(" "))) for piece in pieces.split(";")]
        gaps = tuple((end, start) for (_, end), (start, _) in zip(places, places[1:], strict=False))
        spans += read_spans(places[0][0], places[-1][1], kind, text or None, gaps)
    return spans
