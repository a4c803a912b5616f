"""Reads rows in memory that name their texts and labels."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.records import read_rows_of_columns
from keras_bert_suite.data.readers.tables import CLASSES, label_table


def read_rows(
    rows: Any,
    text_columns: str | Sequence[str],
    label_column: str | None = None,
    problem_type: str | None = CLASSES,
    label_separator: str = ",",
) -> Examples:
    """Reads rows such as `{"text": "good film", "label": "good"}`.

    >>> rows = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
    >>> read = read_rows(rows, "text", "label")
    >>> read.x, read.y, read.label_names
    (['good', 'bad'], ['1', '0'], ['0', '1'])

    Args:
        rows: list of dicts; a DataFrame; a `Dataset` of the `datasets` library of Hugging Face; or
            another iterable of dicts, such as a Dataset of PyTorch.
        text_columns, label_column, problem_type, label_separator: as for `read_table`.

    Returns:
        `Examples`, as from `read_table`. If the label column of a `Dataset` is a `ClassLabel`, its
        names are the labels, in their order.

    Raises:
        ValueError: as `read_table`.
    """
    feature = getattr(rows, "features", None)
    feature = feature.get(label_column) if isinstance(feature, dict) else None
    names = getattr(feature, "names", None)
    if hasattr(rows, "iloc"):
        rows = rows.to_dict("records")
    rows = [rows[place] for place in range(len(rows))] if _is_indexed(rows) else list(rows)
    wrong = next((row for row in rows if not isinstance(row, dict)), None)
    if wrong is not None:
        raise ValueError(f"A row must be a dict of its columns, got {str(wrong)[:80]!r}.")
    if names is not None:
        rows = [{**row, label_column: names[row[label_column]]} for row in rows]
    texts = [text_columns] if isinstance(text_columns, str) else list(text_columns)

    def read(columns):
        return read_rows_of_columns(rows, columns, "rows")

    read_examples = label_table(read, texts, label_column, problem_type, label_separator)
    if names is None or read_examples.label_names is None:
        return read_examples
    return dataclasses.replace(read_examples, label_names=list(names))


def _is_indexed(rows):
    """Whether rows are read by their number. A Dataset of PyTorch may have no `__iter__`."""
    return hasattr(rows, "__getitem__") and hasattr(rows, "__len__") and not isinstance(rows, dict)
