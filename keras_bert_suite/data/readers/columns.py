"""Reads columns of tables."""

import functools
import itertools

from keras_bert_suite.data.readers.delimited_rows import (
    QUOTES_REMEDY,
    TableForm,
    find_other_mark,
    has_table_name,
    name_delimiter,
)
from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.records import is_record_file, read_record_columns
from keras_bert_suite.data.readers.row_faults import RowFaults
from keras_bert_suite.data.readers.text_files import read_text

#: Why a row is left out.
BROKEN = "another number of fields than the first line"


def read_columns(
    path,
    columns,
    encoding="utf-8",
    delimiter=None,
    header=True,
    leave_out_broken=False,
    quoting=None,
    faults=None,
):
    """Reads some columns of a file, by name or by number.

    A `.tsv` file has tabs between fields and no quoting. Only a line feed ends a line, so a text
    may hold any other character; see `split_lines`. A `.csv` file has commas and quotes as in
    RFC 4180. In a file of several columns, empty lines at the end are skipped. A field may be
    empty.

    >>> read_columns("examples/data/sentences_test.tsv", ["sentence", "label"]).x[1][:2]
    ['negative', 'positive']

    Args:
        path: str or path. Without a `delimiter` it must end in `.tsv` or `.csv`; in `.txt` or
            `.tab` with a tab, \\x01 or \\x02 in the first line; or in `.jsonl`, `.ndjson`, `.json`
            or `.parquet`, see `read_record_columns`.
        columns: list of str, the columns to read: their names in the first line or, without a
            `header`, their numbers, "1" for the first.
        encoding: str, the encoding of the file. A byte order mark is dropped.
        delimiter: str, one character. With a tab, \\x01 or \\x02 the file is read as a `.tsv` file
            with this character in place of the tab, whatever its name; with another character as
            a `.csv` file with this character in place of the comma.
        header: bool, whether the first line names the columns.
        leave_out_broken: bool. True leaves out rows with more or fewer fields than the first line,
            and raises no error for them.
        quoting: `csv.QUOTE_MINIMAL`: a field may be in quotes, as in RFC 4180. `csv.QUOTE_NONE`:
            quotes have no meaning. None: as the delimiter says.
        faults: `RowFaults`, to which rows that cannot be read are added; None to raise an error for
            them.

    Returns:
        `Examples` of at least one row. Its `x` is a tuple with a list of str for each column.

    Raises:
        ValueError: if the file is empty or cannot be decoded, if a name in `columns` belongs to no
            column or to two columns, or if a row has more or fewer fields than the first line,
            naming the line.
        OSError: if the file cannot be read.

    Warns:
        UserWarning: if fields without quoting seem to be in quotes, and `quoting` is None.
    """
    if faults is None:
        faults = RowFaults(str(path))
        options = (encoding, delimiter, header, leave_out_broken, quoting, faults)
        table = read_columns(path, columns, *options)
        faults.keep(range(len(table)))
        return table
    if delimiter is None and is_record_file(path):
        if not header:
            raise ValueError(
                f"The columns of {path} have names. Leave out header=False, --noheader."
            )
        if quoting is not None:
            raise ValueError(f"The texts of {path} need no quoting. Leave out quoting, --quoting.")
        return read_record_columns(path, columns, encoding, faults)
    is_unnamed = delimiter is None and not has_table_name(path)
    text = None if is_unnamed else read_text(path, encoding)
    form = TableForm.find(path, text, delimiter, quoting)
    rows = form.split(text, path)
    first_line = next(rows, (1, [""]))
    names = first_line[1]
    if not any(names):
        raise ValueError(
            f"{path} is empty or begins with an empty line. Wanted columns {', '.join(columns)}."
        )
    find_named_column = functools.partial(_find_column, form=form)
    find_column = find_named_column if header else _find_numbered_column
    numbers = [find_column(path, names, column) for column in columns]
    if not header:
        rows = itertools.chain([first_line], rows)
    left_out = {BROKEN: []} if leave_out_broken else {}
    kept = list(_keep_rows(rows, names, header, left_out.get(BROKEN), form, faults))
    if not kept:
        faults.keep([])
        raise ValueError(f"{path} has a line of column names and no row below it.")
    x = tuple([fields[number] for _, fields in kept] for number in numbers)
    lines = [line for line, _ in kept]
    form.warn_of_quotes(path, x, lines)
    left_out = {reason: places for reason, places in left_out.items() if places}
    return Examples(str(path), x, lines=lines, left_out=left_out)


def _keep_rows(rows, names, has_header, left_out, form, faults):
    """Yields the rows with as many fields as there are names.

    The lines of others go to the list `left_out`, if there is one, or else to `faults`. So do the
    line of names once more, and an empty line between rows.
    """
    empty_lines = []
    for line_number, fields in rows:
        if left_out is not None and len(fields) != len(names):
            left_out.append(line_number)
            continue
        if len(names) > 1 and fields == [""]:
            empty_lines.append(line_number)
            continue
        wanted = f"wanted the {len(names)} fields of the first line, and the line"
        for line in empty_lines:
            faults.add_line(line, "no field", f"{wanted} is empty", "Correct it.")
        empty_lines.clear()
        if has_header and len(names) > 1 and fields == names:
            got = "the line of names stands here once more, as after joining two files"
            faults.add_line(line_number, "the names of the columns", got, "Remove it.")
        elif len(fields) != len(names):
            got = f"{wanted} has {len(fields)} of them"
            faults.add_line(line_number, BROKEN, got, f"Correct it.{form.explain_width(fields)}")
        else:
            yield line_number, fields


def _find_column(path, header, column, form):
    if header.count(column) != 1:
        problem = "two columns" if column in header else "no column"
        # The first line of a file without a header is a text, and may be long.
        names = ", ".join(map(repr, header))
        names = names if len(names) < 1000 else f"{names[:1000]}... ({len(header):,} columns)"
        line = form.delimiter.join(header)
        mark = find_other_mark(line, form.delimiter)
        if mark and column in (name.strip('"') for name in line.split(mark)):
            advice = (
                f"Name the delimiter, which seems to be {mark!r}: {name_delimiter(mark, line)}."
            )
        elif f'"{column}"' in header:
            advice = f"Its names are in quotes: pass {QUOTES_REMEDY}."
        elif column in (name.strip(' "') for name in header):
            advice = (
                "Spaces are beside its delimiters. Pass read_rows what pandas.read_csv(path, "
                f"sep={form.delimiter!r}, skipinitialspace=True) reads."
            )
        elif line.startswith("sep=") and len(line) == 5:
            advice = (
                "The first line tells Excel the delimiter. Remove it, and pass "
                f"delimiter={line[-1]!r}."
            )
        else:
            advice = (
                "If the first line is a row and not a line of names, use header=False or "
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
