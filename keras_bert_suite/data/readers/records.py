"""Reads columns of rows that name their values: JSON lines, Parquet files, and rows in memory."""

import json
import numbers
from pathlib import Path

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.text_files import read_text, split_lines

#: The ends of the names of such files.
JSON_LINES, PARQUET = (".jsonl", ".ndjson"), (".parquet",)

_OBJECT = 'a JSON object such as {"text": "good film", "label": "good"}'

#: A JSON object in each line, as in the files of CLUE; or one list of objects.
JSON = (".json",)


def is_record_file(path):
    """Whether the end of a file's name says that its rows name their values."""
    return Path(path).suffix.lower() in (*JSON_LINES, *JSON, *PARQUET)


def read_record_columns(path, columns, encoding, faults):
    """Reads some columns of a file of JSON or JSON lines, or of a Parquet file.

    Args:
        path: str or path.
        columns: list of str.
        encoding: str, of JSON.
        faults: `RowFaults`, for lines that are no JSON object, and rows whose values have types
            that `make_field` does not take.

    Returns:
        `Examples`. Its `x` is a tuple with a list of fields for each column, see `make_field`.

    Raises:
        ValueError: if no row has a column, or if pandas is missing.
        OSError: if the file cannot be read.
    """
    if Path(path).suffix.lower() in PARQUET:
        return read_rows_of_columns(_read_parquet(path), columns, str(path), faults)
    text = read_text(path, encoding)
    if text.lstrip().startswith("[") and Path(path).suffix.lower() in JSON:
        return read_rows_of_columns(_read_list(path, text, faults), columns, str(path), faults)
    rows, lines = [], []
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            got = f"wanted {_OBJECT}, got {line[:40]!r}"
        except (json.JSONDecodeError, RecursionError) as error:
            row, got = None, f"{error}, wanted a JSON object"
        if isinstance(row, dict):
            rows.append(row)
            lines.append(number)
        else:
            cause = _explain_line(path, line) if number == 1 else "Correct it."
            faults.add_line(number, "no JSON object", got, cause)
    if not rows:
        faults.keep([])
    return read_rows_of_columns(rows, columns, str(path), faults, lines)


def _read_list(path, text, faults):
    """The rows of a file with one list of JSON objects. Others become empty rows with a fault."""
    try:
        rows = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}, wanted a list of JSON objects. Correct it.") from None
    table = Examples(str(path), (rows,))
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            got = f"wanted {_OBJECT}, got {str(row)[:40]!r}"
            faults.add(table, number, "no JSON object", got, "Correct it.")
            rows[number] = {}
    return rows


def _explain_line(path, line):
    """The likely cause if the first line of a file is no JSON object."""
    start = line.strip()
    if start in ("{", "[") or (start.startswith("{") and Path(path).suffix.lower() in JSON):
        return (
            "If the file is one JSON document, take its rows from json.load, and pass them to "
            "read_rows. Questions in the form of SQuAD are for read_squad."
        )
    return (
        f"If {start[:40]!r} is a line of names above the objects, remove it. If the file is a "
        "table, pass its delimiter, such as delimiter=','."
    )


def read_rows_of_columns(rows, columns, path, faults, lines=None):
    """Takes columns from rows in memory.

    Args:
        rows: list of dicts of a column name -> value.
        columns: list of str. A row without one of them has an empty field.
        path: str, for messages.
        faults: as for `read_record_columns`.
        lines: list of int, or None.

    Returns, Raises: as for `read_record_columns`.
    """
    table = Examples(path, (rows,), lines=lines)
    if not rows:
        raise ValueError(f"{path} has no rows.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    for column in columns:
        if column not in names:
            if len(faults.rows) == len(rows):
                faults.keep([])
            raise ValueError(
                f"{path} has no column {column!r}. Its columns are {', '.join(map(str, names))}."
            )
    x = tuple(
        [_read_field(table, place, column, faults) for place in range(len(rows))]
        for column in columns
    )
    return Examples(path, x, lines=lines)


def make_field(value):
    """A value as a field of a table: str, or a list of str.

    >>> make_field("good"), make_field(2.0), make_field(None), make_field([1, 2])
    ('good', '2', '', ['1', '2'])

    Args:
        value: str, bool, number or None, also of NumPy and pandas; or a list of them. None, NaN and
            the NA of pandas are missing.

    Raises:
        TypeError: if it is of another type.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    if is_missing(value):
        return ""
    if hasattr(value, "tolist"):  # Of NumPy.
        return make_field(value.tolist())
    if isinstance(value, (list, tuple)):
        return [make_field(part) for part in value]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numbers.Real):
        return str(int(value)) if value == int(value) else repr(value)
    raise TypeError(f"{type(value).__name__} is no text, number or list of them")


def is_missing(value):
    """Whether a value is None, NaN, NaT or the NA of pandas, and not the name "nan" or "None"."""
    kind = type(value).__name__
    has_nan = isinstance(value, numbers.Real) or kind in ("datetime64", "timedelta64")
    is_nan = has_nan and value != value
    return value is None or is_nan or kind in ("NAType", "NaTType")


def _read_field(table, place, column, faults):
    try:
        return make_field(table.x[0][place].get(column))
    except (TypeError, OverflowError) as error:  # Also an infinite number.
        cause = _explain_value(table, table.x[0][place][column])
        got = f"the value of {column!r}: {error}"
        faults.add(table, place, f"no text in the column {column!r}", got, cause)
        return ""


def _explain_value(table, value):
    """The likely cause if a value of a row is a dict."""
    if len(table) != 1 or not isinstance(value, dict):
        return "Correct it."
    return (
        "If the file has one dict of columns, as `DataFrame.to_json` of pandas writes it, write "
        "it with orient='records', or pass pandas.read_json(path) to read_rows."
    )


def _read_parquet(path):
    try:
        import pandas

        return pandas.read_parquet(Path(path).expanduser()).to_dict("records")
    except ImportError as error:
        raise ValueError(
            f"{path}: a Parquet file is read by pandas with pyarrow, and {error}. Install them: "
            "pip install pandas pyarrow."
        ) from None
