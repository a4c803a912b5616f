"""Reads columns of tables."""

import csv
import functools
import io
import itertools
from pathlib import Path

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.records import JSON_LINES, PARQUET, read_record_columns
from keras_bert_suite.data.readers.text_files import read_text, split_lines

#: Why a row is left out.
BROKEN = "another number of fields than the first line"


def read_columns(
    path, columns, encoding="utf-8", delimiter=None, header=True, leave_out_broken=False
):
    """Reads some columns of a file, by name or by number.

    A `.tsv` file has tabs between fields and no quoting. Only a line feed ends a line, so a text
    may hold any other character; in a file without one, a carriage return ends a line. A `.csv`
    file has commas and quotes as in RFC 4180. In a file of several columns, empty lines at the end
    are skipped. A field may be empty.

    >>> read_columns("examples/data/sentences_test.tsv", ["sentence", "label"]).x[1][:2]
    ['negative', 'positive']

    Args:
        path: str or path. Without a `delimiter` it must end in `.tsv` or `.csv`; in `.txt` or
            `.tab` with a tab in the first line; or in `.jsonl`, `.ndjson` or `.parquet`, see
            `read_record_columns`.
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
        `Examples` of at least one row. Its `x` is a tuple with a list of str for each column.

    Raises:
        ValueError: if the file is empty or cannot be decoded, if a name in `columns` belongs to no
            column or to two columns, or if a row has more or fewer fields than the first line,
            naming the line.
        OSError: if the file cannot be read.
    """
    if delimiter is None and Path(path).suffix.lower() in (*JSON_LINES, *PARQUET):
        if not header:
            raise ValueError(
                f"The columns of {path} have names. Leave out header=False, --noheader."
            )
        return read_record_columns(path, columns, encoding)
    text = None if delimiter is None and _has_no_table_name(path) else read_text(path, encoding)
    split_rows = _find_splitter(path, delimiter, text)
    rows = split_rows(text, path)
    first_line = next(rows, (1, [""]))
    names = first_line[1]
    if not any(names):
        raise ValueError(
            f"{path} is empty or begins with an empty line. Wanted columns {', '.join(columns)}."
        )
    find_column = _find_column if header else _find_numbered_column
    numbers = [find_column(path, names, column) for column in columns]
    if not header:
        rows = itertools.chain([first_line], rows)
    left_out = {BROKEN: []} if leave_out_broken else {}
    kept = list(_keep_rows(rows, path, len(names), left_out.get(BROKEN)))
    if not kept:
        raise ValueError(f"{path} has a line of column names and no row below it.")
    x = tuple([fields[number] for _, fields in kept] for number in numbers)
    left_out = {reason: lines for reason, lines in left_out.items() if lines}
    return Examples(str(path), x, lines=[line for line, _ in kept], left_out=left_out)


def _keep_rows(rows, path, num_fields, left_out):
    """Yields the rows with `num_fields` fields. The lines of others go to a list, if there is one.

    Raises:
        ValueError: if a row has more or fewer fields, and `left_out` is None; or if there is an
            empty line between rows.
    """
    empty_line = None
    for line_number, fields in rows:
        if left_out is not None and len(fields) != num_fields:
            left_out.append(line_number)
            continue
        if num_fields > 1 and fields == [""]:
            empty_line = empty_line or line_number
            continue
        if empty_line or len(fields) != num_fields:
            got = "is empty" if empty_line else f"has {len(fields)} of them"
            raise ValueError(
                f"{path}, line {empty_line or line_number}: wanted the {num_fields} fields of the "
                f"first line, and the line {got}. Correct it."
            )
        yield line_number, fields


def _split_tsv(text, path):
    for line_number, line in enumerate(split_lines(text), 1):
        yield line_number, line.split("\t")


def _split_csv(text, path, delimiter=","):
    if text.count("\r\r\n") == text.count("\n"):
        # Python's csv writes such lines on Windows into a file opened without newline="".
        text = text.replace("\r\r\n", "\n")
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
            "in quotes, and its quotes are doubled. If another character is between the fields, "
            "name it as the delimiter."
        ) from None
    finally:
        csv.field_size_limit(former_limit)


_SPLITTERS = {".tsv": _split_tsv, ".csv": _split_csv}

#: Ends of names of files that are tables if they have tabs.
_TEXT_FILES = (".txt", ".tab")


def _has_no_table_name(path):
    return Path(path).suffix.lower() not in {*_SPLITTERS, *_TEXT_FILES}


def _find_splitter(path, delimiter, text):
    if delimiter is None:
        suffix = Path(path).suffix.lower()
        if splitter := _SPLITTERS.get(suffix):
            return splitter
        if suffix in _TEXT_FILES and "\t" in text.partition("\n")[0]:
            return _split_tsv
        remedy = "Name its delimiter."
        if suffix == ".json":
            remedy = "If it has a JSON object in each line, rename it to .jsonl; for other JSON, "
            remedy += "pass json.load's rows to read_rows."
        if suffix in (".xlsx", ".xls"):
            remedy = "Save it as CSV, or pass the rows of pandas.read_excel to read_rows."
        raise ValueError(
            f"{path} is neither a .tsv nor a .csv file, nor a .txt file with a tab in its first "
            f"line. {remedy}"
        )
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"The delimiter must be one character, no quote, got {delimiter!r}.")
    return _split_tsv if delimiter == "\t" else functools.partial(_split_csv, delimiter=delimiter)


def _find_column(path, header, column):
    if header.count(column) != 1:
        problem = "two columns" if column in header else "no column"
        # The first line of a file without a header is a text, and may be long.
        names = ", ".join(map(repr, header))
        names = names if len(names) < 1000 else f"{names[:1000]}... ({len(header):,} columns)"
        marks = [mark for mark in ";,|\t" if column in header[0].split(mark)]
        advice = (
            f"Name the delimiter, which seems to be {marks[0]!r}."
            if marks and len(header) == 1
            else "If the first line is a row and not a line of names, use header=False or "
            "--noheader, and numbers of columns."
        )
        raise ValueError(f"{path} has {problem} {column!r}. Its columns are {names}. {advice}")
    return header.index(column)


def _find_numbered_column(path, first_row, column):
    if not (column.isascii() and column.isdecimal() and 1 <= int(column) <= len(first_row)):
        raise ValueError(
            f"Without a header, a column of {path} is named by its number, from 1 to "
            f"{len(first_row)}, got {column!r}."
        )
    return int(column) - 1
