"""Reads tables of texts and labels from TSV and CSV files.

The command line loads this file before Keras is imported, so it imports only the standard library.
"""

import csv
import dataclasses
import functools
import io
import itertools
import sys
from pathlib import Path

#: The file name that stands for standard input.
STANDARD_INPUT = "-"


@dataclasses.dataclass(frozen=True)
class Table:
    """Some columns of a file.

    Attributes:
        path: str, the file.
        columns: dict, name -> list of N strings.
        line_numbers: list of N ints, the line in which each row begins. The header is line 1.
        left_out: list of ints, the lines that are left out, because they have another number of
            fields.
    """

    path: str
    columns: dict
    line_numbers: list
    left_out: list = dataclasses.field(default_factory=list)

    def __len__(self):
        return len(self.line_numbers)

    def locate(self, row):
        """Where a row is, as text for a message: "train.tsv, line 7"."""
        return f"{self.path}, line {self.line_numbers[row]}"


def read_table(
    path, columns, encoding="utf-8", delimiter=None, header=True, leave_out_broken=False
):
    """Reads some columns of a file, by name or by number.

    A `.tsv` file has tabs between fields and no quoting. Only a line feed ends a line, so a text
    may hold any other character. A `.csv` file has commas and quotes as in RFC 4180. In a file of
    several columns, empty lines at the end are skipped. A field may be empty.

    >>> read_table("examples/data/sentences_test.tsv", ["sentence", "label"]).columns["label"][:2]
    ['negative', 'positive']

    Args:
        path: str or path. Without a `delimiter` it must end in `.tsv` or `.csv`.
        columns: list of str, the columns to read: their names in the first line or, without a
            `header`, their numbers, "1" for the first.
        encoding: str, the encoding of the file. A byte order mark is dropped.
        delimiter: str, one character. With a tab the file is read as a `.tsv` file, whatever its
            name. With another character it is read as a `.csv` file with this character in place
            of the comma.
        header: bool, whether the first line names the columns.
        leave_out_broken: bool. True leaves out rows with more or fewer fields than the first line,
            and raises no error for them.

    Returns:
        `Table` of at least one row.

    Raises:
        ValueError: if the file is empty or cannot be decoded, if a name in `columns` belongs to no
            column or to two columns, or if a row has more or fewer fields than the first line,
            naming the line.
        OSError: if the file cannot be read.
    """
    split_rows = _find_splitter(path, delimiter)
    rows = split_rows(read_text(path, encoding), path)
    first_line = next(rows, (1, [""]))
    names = first_line[1]
    if not any(names):
        raise ValueError(
            f"{path} is empty or begins with an empty line. Wanted columns {', '.join(columns)}."
        )
    find_column = _find_column if header else _find_numbered_column
    places = [find_column(path, names, column) for column in columns]
    if not header:
        rows = itertools.chain([first_line], rows)

    values, line_numbers, left_out, empty_line = [[] for _ in columns], [], [], None
    for line_number, fields in rows:
        if leave_out_broken and len(fields) != len(names):
            left_out.append(line_number)
            continue
        if len(names) > 1 and fields == [""]:
            empty_line = empty_line or line_number
            continue
        if empty_line or len(fields) != len(names):
            got = "is empty" if empty_line else f"has {len(fields)} of them"
            raise ValueError(
                f"{path}, line {empty_line or line_number}: wanted the {len(names)} fields of the "
                f"first line, and the line {got}. Correct it."
            )
        for column, place in zip(values, places, strict=True):
            column.append(fields[place])
        line_numbers.append(line_number)
    if not line_numbers:
        raise ValueError(f"{path} has a line of column names and no row below it.")
    return Table(str(path), dict(zip(columns, values, strict=True)), line_numbers, left_out)


def read_lines(path, encoding="utf-8"):
    """Reads a file with a text in each line, or standard input if `path` is "-".

    Returns:
        list of at least one str. A line ends at a line feed, or at a carriage return and a
        line feed.

    Raises:
        ValueError: if the file is empty or cannot be decoded.
        OSError: if the file cannot be read.
    """
    text = read_text(path, encoding)
    if not text:
        raise ValueError(f"{_name(path)} is empty. Wanted a text in each line.")
    return [line for _, (line,) in _split_lines(text)]


def list_label_names(labels):
    """The different labels, sorted. They are sorted by value if all are integers.

    >>> list_label_names(["10", "9", "10"])
    ['9', '10']
    """
    names = set(labels)
    try:
        return sorted(names, key=lambda name: (int(name), name))
    except ValueError:
        return sorted(names)


def read_text(path, encoding):
    """Reads a whole file, or standard input, without its byte order mark.

    Raises:
        ValueError: if the file is in another encoding, naming the line.
    """
    if path == STANDARD_INPUT:
        data = sys.stdin.buffer.read()
    else:
        data = Path(path).expanduser().read_bytes()
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line_number = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{_name(path)}, line {line_number}: {error}. Convert the file to UTF-8, or name the "
            "encoding it is in."
        ) from None
    except LookupError as error:
        raise ValueError(f"{error}. Wanted an encoding of Python, e.g. 'utf-8'.") from None


def _split_lines(text, path=None):
    for line_number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        yield line_number, [line.removesuffix("\r")]


def _split_tsv(text, path):
    for line_number, (line,) in _split_lines(text):
        yield line_number, line.split("\t")


def _split_csv(text, path, delimiter=","):
    former_limit = csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line_number = 1
    try:
        for fields in reader:
            yield line_number, fields or [""]
            line_number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {line_number}: {error}. A field with a quote or a {delimiter!r} is put "
            "in quotes, and its quotes are doubled."
        ) from None
    finally:
        csv.field_size_limit(former_limit)


_SPLITTERS = {".tsv": _split_tsv, ".csv": _split_csv}


def _find_splitter(path, delimiter):
    if delimiter is None:
        if splitter := _SPLITTERS.get(Path(path).suffix.lower()):
            return splitter
        raise ValueError(f"{path} is neither a .tsv nor a .csv file. Name its delimiter.")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"The delimiter must be one character, no quote, got {delimiter!r}.")
    return _split_tsv if delimiter == "\t" else functools.partial(_split_csv, delimiter=delimiter)


def _find_column(path, header, column):
    if header.count(column) != 1:
        problem = "two columns" if column in header else "no column"
        # The first line of a file without a header is a text, and may be long.
        names = ", ".join(map(repr, header))
        names = names if len(names) < 1000 else f"{names[:1000]}... ({len(header):,} columns)"
        raise ValueError(
            f"{path} has {problem} {column!r}. Its columns are {names}. If the first line is a row "
            "and not a line of names, use header=False or --noheader, and numbers of columns."
        )
    return header.index(column)


def _find_numbered_column(path, first_row, column):
    if not (column.isascii() and column.isdecimal() and 1 <= int(column) <= len(first_row)):
        raise ValueError(
            f"Without a header, a column of {path} is named by its number, from 1 to "
            f"{len(first_row)}, got {column!r}."
        )
    return int(column) - 1


def _name(path):
    return "standard input" if path == STANDARD_INPUT else path
