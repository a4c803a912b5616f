"""Reads tables of queries and candidates, with a candidate and its relevance in each row."""

import dataclasses
import os
from typing import Any

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.field_checks import NUMBERS
from keras_bert_suite.data.readers.row_faults import RowFaults
from keras_bert_suite.data.readers.rows import read_rows
from keras_bert_suite.data.readers.tables import read_table


def read_rankings(
    table: str | os.PathLike[str] | Any,
    query_column: str = "query",
    text_column: str = "text",
    label_column: str = "label",
    **arguments: Any,
) -> Examples:
    """Reads rows of a query, a candidate and its relevance, such as a log of clicks.

    The rows of a query, anywhere in the table, become one list of candidates. Spaces around a query
    do not count.

    >>> rows = [("a", "b", 1), ("c", "d", 0), ("a", "e", 0)]
    >>> read = read_rankings([dict(zip(("query", "text", "label"), row)) for row in rows])
    >>> read.x, read.y
    ((['a', 'c'], [['b', 'e'], ['d']]), [[1.0, 0.0], [0.0]])

    Args:
        table: path of a table, as for `read_table`: TSV, CSV, JSON lines or Parquet; or rows in
            memory, as for `read_rows`.
        query_column, text_column, label_column: str. A label is a number: 1 for a click and 0 for
            none, or grades.
        **arguments: of `read_table` or `read_rows`: `left_out_labels`, `errors`, and for a file
            `encoding`, `delimiter`, `header` and `quoting`.

    Returns:
        `Examples`, for a `TextRanker`. `x`: (queries, candidates), the candidates of a query a list
        of str. `y`: for each query a list of floats. `lines`: the first line of each query.

    Raises:
        OSError: if the file cannot be read.
        ValueError: as `read_table`. A label is at least 0.
    """
    columns = ([query_column, text_column], label_column, NUMBERS)
    read_any: Any = read_table if isinstance(table, (str, os.PathLike)) else read_rows
    read: Examples = read_any(table, *columns, **arguments)
    faults = RowFaults(read.path, arguments.get("errors", "raise"))
    for row, label in enumerate(read.y or []):
        if label < 0:
            got = f"the label is {label:g}, wanted a relevance of at least 0"
            faults.add(read, row, "a label below 0", got, "Correct it.")
    read = faults.leave_out(read)
    (queries, texts), labels = read.columns, read.y or []
    rows: dict[str, list[int]] = {}
    for row, query in enumerate(queries):
        rows.setdefault(query.strip(), []).append(row)
    return dataclasses.replace(
        read,
        x=(list(rows), [[texts[row] for row in group] for group in rows.values()]),
        y=[[labels[row] for row in group] for group in rows.values()],
        label_names=None,
        lines=read.lines and [read.lines[group[0]] for group in rows.values()],
    )
