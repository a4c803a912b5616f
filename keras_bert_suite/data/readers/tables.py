"""Reads tables of texts and their labels."""

import dataclasses
import math
import os
import warnings
from collections.abc import Sequence

from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.examples import Examples

#: Values of `problem_type`, as for a `TextClassifier`.
CLASSES, SETS = "single_label_classification", "multi_label_classification"
NUMBERS = "regression"


def read_table(
    path: str | os.PathLike[str],
    text_columns: str | int | Sequence[str | int],
    label_column: str | int | None = None,
    problem_type: str | None = CLASSES,
    label_separator: str = ",",
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool = True,
) -> Examples:
    """Reads the texts of a table, and a label for each row.

    >>> read_table("examples/data/sentences_test.tsv", "sentence", "label").y[:2]
    ['negative', 'positive']

    A `.tsv` file has tabs between fields and no quoting, and so has a `.txt` file with a tab in its
    first line. A `.csv` file has commas and quotes as in RFC 4180. A `.jsonl` file has a JSON
    object in each line, whose keys are the columns. A `.parquet` file is read by pandas, with
    pyarrow. In both, a number is a label as it is written, and a list is a set of labels.

    Args:
        path: str or path. Without a `delimiter` its end says how it is read.
        text_columns: str or int, the column of the texts, or a list of them for rows of several
            texts: a name in the first line or, without a `header`, a number, 1 or "1" for the first
            column.
        label_column: str or int, the column of the labels; None for a file without labels.
        problem_type: how the labels are read. "single_label_classification": names of classes.
            "multi_label_classification": sets of names, which may be empty. "regression": numbers.
            None: texts, for `Seq2Seq`.
        label_separator: str, what is between the names of a set.
        encoding: str, the encoding of the file. A byte order mark is dropped.
        delimiter: str, one character. With a tab the file is read as a `.tsv` file, whatever its
            name. With another character it is read as a `.csv` file with this character in place
            of the comma.
        header: bool, whether the first line names the columns.

    Returns:
        `Examples`. Its `label_names` are the labels of the file, sorted, by value if all are
        integers. For "regression" they are the name of the column, or "score" without a header.

    Raises:
        ValueError: if a text or a label is missing, a number is not finite, or a row has more or
            fewer fields than the first line, naming the line; if a column does not exist or is
            asked for twice; if the file is empty or cannot be decoded; or if an argument has a
            value other than those above.
        OSError: if the file cannot be read.
    """
    texts = [text_columns] if isinstance(text_columns, str | int) else text_columns
    texts = [str(column) if isinstance(column, int) else column for column in texts]
    label_column = str(label_column) if isinstance(label_column, int) else label_column

    def read(columns):
        return read_columns(path, columns, encoding, delimiter, header)

    examples = label_table(read, texts, label_column, problem_type, label_separator)
    if problem_type == NUMBERS and label_column is not None and not header:
        return dataclasses.replace(examples, label_names=["score"])
    return examples


def label_table(read, texts, label_column, problem_type, label_separator):
    """Reads columns, and the labels among them.

    Args:
        read: function from a list of columns to `Examples`, whose `x` is a tuple of the columns.
        texts: list of str, the columns of the texts.
        label_column, problem_type, label_separator: as for `read_table`.

    Returns, Raises: as `read_table`.
    """
    if problem_type not in (CLASSES, SETS, NUMBERS, None):
        raise ValueError(
            f"problem_type must be {CLASSES!r}, {SETS!r}, {NUMBERS!r} or None, got "
            f"{problem_type!r}."
        )
    if label_column is not None and not isinstance(label_column, str):
        raise ValueError(
            f"label_column must be the name of one column, got {label_column!r}. For a column of 0 "
            "and 1 for each label, read the table with pandas, and pass its columns to `fit`: "
            "fit(table[text_column], table[label_columns])."
        )
    if not label_separator:
        raise ValueError('label_separator must not be empty. The default is a comma, ",".')
    columns = texts if label_column is None else [*texts, label_column]
    if len(set(columns)) != len(columns):
        raise ValueError(f"Wanted different columns, got {', '.join(columns)}.")
    table = read(columns)
    for number, column in enumerate(columns if problem_type is None else texts):
        check_filled(table, number, "text", column)
    x = table.columns[: len(texts)]
    examples = dataclasses.replace(table, x=x if len(x) > 1 else x[0])
    if label_column is None:
        return examples
    y, names = table.columns[-1], None
    if problem_type == CLASSES:
        check_filled(table, -1, "label", label_column)
        y = [label.strip() for label in y]
        names = list_label_names(y)
    elif problem_type == SETS:
        y = [_split_labels(labels, label_separator) for labels in y]
        _warn_of_separator(table.path, y, label_separator)
        names = list_label_names(name for labels in y for name in labels)
    elif problem_type == NUMBERS:
        y = [_read_number(table, row, label_column) for row in range(len(table))]
        names = [label_column]
    return dataclasses.replace(examples, y=y, label_names=names)


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


def check_filled(table, number, noun, column):
    """Raises a `ValueError` if a field of a column is empty or a list, naming its line."""
    check_no_lists(table, number, noun, column)
    fields = table.columns[number]
    empty = [row for row, field in enumerate(fields) if not field.strip()]
    if empty:
        raise ValueError(
            f"{table.locate(empty[0])}: the {noun} in the column {column!r} is missing, as in "
            f"{len(empty)} of {len(fields)} rows. Add the {noun}, or remove the row."
        )


def check_no_lists(table, number, noun, column):
    """Raises a `ValueError` if a field of a column is a list, naming its line."""
    fields = table.columns[number]
    lists = [row for row, field in enumerate(fields) if not isinstance(field, str)]
    if lists:
        raise ValueError(
            f"{table.locate(lists[0])}: the {noun} in the column {column!r} is a list. Wanted one "
            "text, or problem_type='multi_label_classification' for lists of labels."
        )


def _split_labels(labels, separator):
    """list of str.

    >>> _split_labels("joy, love", ",")
    ['joy', 'love']
    """
    names = labels.split(separator) if isinstance(labels, str) else labels
    return [name.strip() for name in names if name.strip()]


def _warn_of_separator(path, sets, separator):
    """Warns if no row has two labels, and another separator seems to be in them."""
    if any(len(names) > 1 for names in sets):
        return
    for name in (name for names in sets for name in names):
        if mark := next((mark for mark in ";|、；，," if mark in name), None):
            warnings.warn(
                f"{path}: no row has two labels with {separator!r} between them, and {name!r} is "
                f"read as one. If it is several, pass label_separator={mark!r}.",
                stacklevel=4,
            )
            return


def _read_number(table, row, column):
    label = table.columns[-1][row]
    try:
        number = float(label)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"{table.locate(row)}: the label in the column {column!r} is {str(label)[:40]!r}. "
            "Wanted a finite number, such as 4.5. Correct it, or name another `label_column`."
        )
    return number
