"""Reads rows in memory that name their texts and labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.field_checks import CLASSES
from keras_bert_suite.data.readers.records import read_rows_of_columns
from keras_bert_suite.data.readers.row_faults import RowFaults
from keras_bert_suite.data.readers.table_labels import TableLabels
from keras_bert_suite.data.readers.tables import label_table


def read_rows(
    rows: Any,
    text_columns: str | Sequence[str],
    label_column: str | None = None,
    problem_type: str | None = CLASSES,
    label_separator: str = ",",
    *,
    label_columns: Sequence[str] | None = None,
    left_out_labels: Sequence[str | int] | None = None,
    label_names: Sequence[str] | None = None,
    errors: str = "raise",
) -> Examples:
    """Reads rows such as `{"text": "good film", "label": "good"}`.

    >>> rows = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
    >>> read = read_rows(rows, "text", "label")
    >>> read.x, read.y, read.label_names
    (['good', 'bad'], ['1', '0'], ['0', '1'])

    Args:
        rows: list of dicts; a DataFrame; a `Dataset` of the `datasets` library of Hugging Face; or
            another iterable of dicts, such as a Dataset of PyTorch.
        text_columns, label_column, problem_type, label_separator, label_columns, left_out_labels,
        label_names, errors: as for `read_table`.

    Returns:
        `Examples`, as from `read_table`. If the label column of a `Dataset` is a `ClassLabel`, or
        has lists of one, its names are the labels, in their order. `left_out` has the numbers of
        rows.

    Raises:
        ValueError: as `read_table`, or if an id of a `ClassLabel` has no name, such as -1 for a
            missing label, unless it is one of `left_out_labels`.
    """
    names = _find_names(rows, label_column)
    if hasattr(rows, "iloc"):
        rows = rows.to_dict("records")
    if isinstance(rows, Mapping):
        raise ValueError(
            f"Wanted rows, got a dict of {', '.join(map(str, rows))}. If these are the splits of a "
            "data set, pass one of them. If they are columns, pass pandas.DataFrame(rows)."
        )
    rows = [rows[place] for place in range(len(rows))] if _is_indexed(rows) else list(rows)
    wrong = next((row for row in rows if not isinstance(row, dict)), None)
    if wrong is not None:
        raise ValueError(f"A row must be a dict of its columns, got {str(wrong)[:80]!r}.")
    if names is not None:
        rows = [{**row, label_column: _name_ids(row.get(label_column), names)} for row in rows]
    texts = [text_columns] if isinstance(text_columns, str) else list(text_columns)

    def read(columns, faults):
        return read_rows_of_columns(rows, columns, "rows", faults)

    labels = TableLabels(
        *(label_column, problem_type, label_separator, label_columns, left_out_labels),
        label_names,
        class_names=names,
    )
    return label_table(read, texts, labels, RowFaults("rows", errors))


def _find_names(rows, column):
    """The names of a `ClassLabel` of the `datasets` library, or of lists of one; or None."""
    features = getattr(rows, "features", None)
    feature = features.get(column) if isinstance(features, dict) else None
    if isinstance(feature, list) and feature:
        feature = feature[0]
    names = getattr(getattr(feature, "feature", feature), "names", None)
    return names if names is None else list(names)


def _name_ids(value, names):
    """The name of a class id, or a list of the names of ids. An id without a name stays."""
    if hasattr(value, "tolist"):  # Of NumPy.
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_name_ids(part, names) for part in value]
    is_id = isinstance(value, int) and 0 <= value < len(names)
    return names[value] if is_id else value


def _is_indexed(rows):
    """Whether rows are read by their number. A Dataset of PyTorch may have no `__iter__`."""
    return hasattr(rows, "__getitem__") and hasattr(rows, "__len__") and not isinstance(rows, dict)
