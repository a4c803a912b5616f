"""Finds the files of a job, cuts them into slices, and reads the rows of a slice."""

import csv
import dataclasses
import io
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from keras_bert_suite.files.messages import list_names, reading, shorten

#: The ends of the names of files, and the format of each.
FORMATS = {
    ".parquet": "parquet",
    **{".jsonl": "jsonl", ".ndjson": "jsonl"},
    **{".csv": "csv", ".tsv": "tsv"},
    ".txt": "text",
}


@dataclasses.dataclass(frozen=True)
class InputSlice:
    """Rows of a file that one process answers at once.

    Attributes:
        number: int, its place among the slices of a job, from 0.
        path: str, of the file, with its protocol.
        start, end: int, of the range of its bytes; in a Parquet file, of its rows. A line belongs
            to the slice that has its first byte.
    """

    number: int
    path: str
    start: int
    end: int


@dataclasses.dataclass
class Rows:
    """Some rows that follow each other in a file.

    Attributes:
        columns: dict of the name of a column -> list of N values, or the column of Arrow.
        first: int, the number of the first row in its slice, from 0.
    """

    columns: dict[str, Any]
    first: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def find_files(inputs: str | Sequence[str]) -> list[dict[str, Any]]:
    """Lists files: dicts of `path`, `size` and `version`, in the order of their names.

    Args:
        inputs: paths, folders or patterns such as "s3://bucket/*.parquet"; one or a list.

    Raises:
        FileNotFoundError: if an input matches no file.
        ValueError: if the end of a name is of no format.
    """
    import fsspec

    found: dict[str, dict[str, Any]] = {}
    for place in [inputs] if isinstance(inputs, str) else inputs:
        files, path = fsspec.url_to_fs(str(place))
        if files.isdir(path):
            names = [name for name in files.find(path) if _find_format(name)]
        else:
            names = [name for name in files.glob(path) if files.isfile(name)]
        if not names:
            raise FileNotFoundError(
                f"{place} matches no file. Pass a file, a folder, or a pattern such as "
                f"'texts/*.parquet'. Formats: {', '.join(FORMATS)}."
            )
        for name in names:
            info, path = files.info(name), files.unstrip_protocol(name)
            if not _find_format(name):
                raise ValueError(
                    f"{path} ends in none of {', '.join(FORMATS)}. Convert it, or choose other "
                    "files."
                )
            keys = ("ETag", "etag", "generation", "LastModified", "mtime", "created")
            version = next((str(info[key]) for key in keys if info.get(key)), "")
            found[path] = {"path": path, "size": info["size"], "version": version}
    return [found[path] for path in sorted(found)]


def cut_files(files: Sequence[dict[str, Any]], slice_bytes: int) -> list[InputSlice]:
    """Cuts files into slices of about `slice_bytes`.

    A table of fields (.csv, .tsv) is one slice: its lines cannot be told without reading it from
    its beginning.
    """
    ranges = []
    for file in files:
        path, size = file["path"], file["size"]
        kind = _find_format(path)
        if kind == "parquet":
            total = _count_rows(path)
            step = max(1, round(total * slice_bytes / max(size, 1)))
        else:
            total, step = size, size if kind in ("csv", "tsv") else slice_bytes
        starts = range(0, total, max(step, 1))
        ranges += [(path, start, min(start + step, total)) for start in starts]
    return [InputSlice(number, *part) for number, part in enumerate(ranges)]


def read_rows(part: InputSlice, columns: Sequence[str] | None, batch_rows: int) -> Iterator[Rows]:
    """Yields the rows of a slice, at most `batch_rows` at once.

    Args:
        columns: the columns that are read; None for all.

    Raises:
        ValueError: if the file is damaged, or lacks a column.
    """
    kind = _find_format(part.path)
    read = _read_parquet if kind == "parquet" else _READERS[kind]
    yield from read(part, columns, batch_rows)


def count_rows_before(part: InputSlice) -> int:
    """The rows of the file before a slice."""
    if part.start == 0 or _find_format(part.path) == "parquet":
        return part.start
    number, left = 0, part.start
    with _open(part.path) as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            number, left, last = number + block.count(b"\n"), left - len(block), block[-1:]
    # The line that begins before the slice, and ends in it, is not of the slice.
    return number if last == b"\n" else number + 1


def _find_format(path):
    return next((kind for end, kind in FORMATS.items() if path.lower().endswith(end)), None)


def _count_rows(path):
    import pyarrow.parquet as pq

    with reading(path), _open(path) as file:
        return pq.ParquetFile(file).metadata.num_rows


def _read_parquet(part, columns, batch_rows):
    import pyarrow.parquet as pq

    with reading(part.path), _open(part.path) as file:
        table = pq.ParquetFile(file)
        check_columns(part, table.schema_arrow.names, columns)
        bounds = [
            0,
            *itertools.accumulate(
                table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)
            ),
        ]
        groups = [
            group
            for group in range(table.num_row_groups)
            if bounds[group] < part.end and bounds[group + 1] > part.start
        ]
        place, first = bounds[groups[0]] if groups else 0, 0
        for batch in table.iter_batches(batch_rows, row_groups=groups, columns=columns):
            begin, end = max(part.start - place, 0), min(part.end - place, len(batch))
            place += len(batch)
            if begin < end:
                batch = batch.slice(begin, end - begin)
                yield Rows(dict(zip(batch.schema.names, batch.columns, strict=True)), first)
                first += len(batch)


def _read_lines(part):
    """Yields the lines that begin in a slice, without their ends."""
    with _open(part.path) as file:
        if part.start:
            file.seek(part.start - 1)
            file.readline()
        while file.tell() < part.end and (line := file.readline()):
            yield line


def _read_texts(part, columns, batch_rows):
    check_columns(part, ["text"], columns)
    lines = (_decode(part, number, line) for number, line in enumerate(_read_lines(part)))
    for first, texts in _batches(lines, batch_rows):
        yield Rows({"text": texts}, first)


def _read_json_lines(part, columns, batch_rows):
    names = None if columns is None else list(columns)
    for first, lines in _batches(_read_lines(part), batch_rows):
        records = [_parse(part, first + row, line) for row, line in enumerate(lines)]
        if names is None:  # The first rows name the columns.
            names = list(dict.fromkeys(name for record in records for name in record))
        if part.number == first == 0:  # Later rows may lack a value.
            check_columns(part, list({name: 0 for record in records for name in record}), names)
        yield Rows({name: [record.get(name) for record in records] for name in names}, first)


def _parse(part, row, line):
    try:
        record = json.loads(_decode(part, row, line))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name_row(part, row)} is not JSON: {error}.") from error
    if not isinstance(record, dict):
        raise ValueError(f"{name_row(part, row)} holds {shorten(line, 60)}, wanted an object.")
    return record


def _decode(part, row, line):
    try:
        text = line.decode("utf-8-sig" if part.start == row == 0 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name_row(part, row)} is not UTF-8: {error}. Convert it.") from error
    return text.removesuffix("\n").removesuffix("\r")


def _read_fields(part, columns, batch_rows):
    is_tsv = _find_format(part.path) == "tsv"
    quoting = csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with reading(part.path), _open(part.path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        rows = csv.reader(text, delimiter="\t" if is_tsv else ",", quoting=quoting)
        names = next(rows, [])
        check_columns(part, names, columns)
        places = [names.index(name) for name in (columns or names)]
        for first, batch in _batches((row for row in rows if row), batch_rows):
            for row, fields in enumerate(batch, first):
                if len(fields) != len(names):
                    raise ValueError(
                        f"{name_row(part, row)} has {len(fields)} fields, and the first line names "
                        f"{len(names)} columns. Repair it."
                    )
            # A field without a character is no value, as a reader of tables says.
            yield Rows(
                {names[place]: [fields[place] or None for fields in batch] for place in places},
                first,
            )


_READERS = {
    "text": _read_texts,
    "jsonl": _read_json_lines,
    **dict.fromkeys(("csv", "tsv"), _read_fields),
}


def _batches(rows, size):
    """Yields (number of the first row, list of rows)."""
    first = 0
    while batch := list(itertools.islice(rows, size)):
        yield first, batch
        first += len(batch)


def name_row(part: InputSlice, row: int) -> str:
    """The file and the number in it, from 1, of row `row` of a slice."""
    return f"{part.path}, row {count_rows_before(part) + row + 1:,},"


def check_columns(part: InputSlice, there: Sequence[str], wanted: Sequence[str] | None) -> None:
    """Raises a ValueError if a column is not there, or there twice."""
    there = list(there)
    for name in wanted or ():
        if there.count(name) != 1:
            raise ValueError(
                f"{part.path} has {'two' if name in there else 'no'} columns {name!r}. There are "
                f"{list_names(there)}. Name the columns of the texts with text_columns, and those "
                "that go on with columns."
            )


def _open(path):
    import fsspec

    return fsspec.open(path, "rb")
