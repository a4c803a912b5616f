"""Reads tables of texts and their labels."""

import dataclasses
import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_suite.argument_checks import check_arguments
from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.feature_fields import name_kinds, read_features
from keras_bert_suite.data.readers.field_checks import (
    CLASSES,
    NUMBERS,
    TAGS,
    check_filled,
    parse_lists,
)
from keras_bert_suite.data.readers.list_prints import BRACKETS, parse_list
from keras_bert_suite.data.readers.row_faults import RowFaults
from keras_bert_suite.data.readers.table_labels import TableLabels


def read_table(
    path: str | os.PathLike[str],
    text_columns: str | int | Sequence[str | int],
    label_column: str | int | None = None,
    problem_type: str | None = CLASSES,
    label_separator: str = ",",
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool = True,
    *,
    label_columns: Sequence[str | int] | None = None,
    features: Sequence[str | int] | Mapping[str | int, Any] | None = None,
    left_out_labels: Sequence[str | int] | None = None,
    quoting: int | None = None,
    label_names: Sequence[str] | None = None,
    errors: str = "raise",
    **kwargs: Any,
) -> Examples:
    """Reads the texts of a table, and a label for each row.

    >>> read_table("examples/data/sentences_test.tsv", "sentence", "label").y[:2]
    ['negative', 'positive']

    A `.tsv` file has tabs between fields and no quoting, and so has a `.txt` file with a tab in its
    first line. A `.csv` file has commas and quotes as in RFC 4180. A `.jsonl` file has a JSON
    object in each line, whose keys are the columns, and so has a `.json` file, which may also be a
    list of objects. A `.parquet` file is read by pandas, with pyarrow. In these, a number is a
    label as it is written, and a list is a set of labels. A list that is written as text, by JSON,
    Python or NumPy, is read as the list.

    Args:
        path: str or path. Without a `delimiter` its end says how it is read.
        text_columns: str or int, the column of the texts, or a list of them for rows of several
            texts: a name in the first line or, without a `header`, a number, 1 or "1" for the first
            column.
        label_column: str or int, the column of the labels; None for a file without labels.
        problem_type: how the labels are read. "single_label_classification": names of classes.
            "multi_label_classification": sets of names, which may be empty. If all sets are lists
            of as many numbers, 0 and 1, the names are "0", "1" and so on, the places of the 1s.
            "regression": numbers. "token_classification": lists of words, with a list of tags each,
            for the taggers. None: texts, for `Seq2Seq`.
        label_separator: str, the separator of the names of a set.
        encoding: str, the encoding of the file. A byte order mark is dropped.
        delimiter: str, one character. With a tab the file is read as a `.tsv` file, whatever its
            name, and with \\x01 or \\x02 as a `.tsv` file with this character in place of the tab.
            With another character it is read as a `.csv` file with this character in place of the
            comma.
        header: bool, whether the first line names the columns.
        label_columns: list of str or int, in place of `label_column`. For classes and sets of
            labels it is a column of 0 and 1 for each label, which has the name of the column; for
            "regression" a column for each number of a row.
        features: list of the columns beside the texts that a classifier reads, see its `features`:
            a column of numbers is a "number", one of true and false a "boolean", and others are a
            "category". Or a dict of a column -> its kind, such as `train.features` or
            `classifier.features`. An empty field is a missing value, and beside numbers and
            booleans so are NaN, NA, N/A, null and None.
        left_out_labels: labels of rows without a label, such as ["-"] in SNLI. Rows that have one
            of them in a label column are left out. With the empty list no label is suspected.
        quoting: `csv.QUOTE_MINIMAL`: fields with a delimiter, a quote or a line end are in quotes,
            as pandas and `csv` write them. `csv.QUOTE_NONE`: quotes have no meaning. None: as said
            above.
        label_names: list of str, the labels that there may be, in their order; for a dev or test
            file `train.label_names` of the training file. None for all labels of the file.
        errors: what becomes of rows that cannot be read: a text or a label is missing, a label is
            none of `label_names` or no finite number, a feature is of another kind, or a row has
            more or fewer fields than the first line. "raise": one error names the first such lines,
            and has their number. "skip": they are left out.

    Returns:
        `Examples`. Its `label_names` are the labels of the file, sorted, by value if all are
        integers. For "regression" they are the name of the column, or "score" without a header.
        With `features` its `x` is a dict of the texts and the features by the names of their
        columns, "column_2" without a header, and its `features` has their kinds. Its `left_out`
        has the lines of rows that `left_out_labels` or `errors="skip"` leave out.

    Raises:
        ValueError: if rows cannot be read, see `errors`, or none is left; if a column does not
            exist or is asked for twice; if the file is empty or cannot be decoded; or if an
            argument has a value that is not listed above.
        OSError: if the file cannot be read.
        TypeError: for further arguments.

    Warns:
        UserWarning: if labels "-", "-1" or "nan" seem to mean that a row has none, and
            `left_out_labels` is None; if most fields of a feature are numbers, and others make it
            a category; if fields seem to be in quotes, and `quoting` is None; if
            most texts are lists written as text; if labels seem to have another separator.
    """
    *known, _ = inspect.signature(read_table).parameters
    check_arguments("read_table", kwargs, known)
    texts = [text_columns] if isinstance(text_columns, str | int) else text_columns
    texts = [str(column) if isinstance(column, int) else column for column in texts]
    label_column = str(label_column) if isinstance(label_column, int) else label_column
    if label_columns is not None and not isinstance(label_columns, str):
        label_columns = list(map(str, label_columns))

    def read(columns, faults):
        options = {"quoting": quoting, "faults": faults}
        return read_columns(path, columns, encoding, delimiter, header, **options)

    labels = TableLabels(
        label_column, problem_type, label_separator, label_columns, left_out_labels, label_names
    )
    kinds = name_kinds(features)
    examples = label_table(read, texts, labels, RowFaults(str(path), errors), kinds)
    if kinds and not header:
        x = {f"column_{column}": values for column, values in examples.x.items()}
        kinds = {f"column_{column}": kind for column, kind in examples.features.items()}
        examples = dataclasses.replace(examples, x=x, features=kinds)
    if problem_type == NUMBERS and label_column is not None and not header:
        return dataclasses.replace(examples, label_names=["score"])
    return examples


def label_table(read, texts, labels, faults, kinds=None):
    """Reads columns, and the labels among them.

    Args:
        read: function from a list of columns and `RowFaults` to `Examples`, whose `x` is a tuple of
            the columns.
        texts: list of str, the columns of the texts.
        labels: `TableLabels`.
        faults: `RowFaults`.
        kinds: dict of each feature -> its kind or None, from `name_kinds`; or None.

    Returns, Raises: as `read_table`.
    """
    columns = [*texts, *(kinds or ()), *labels.columns]
    if len(set(columns)) != len(columns):
        raise ValueError(f"Wanted different columns, got {', '.join(columns)}.")
    table = read(columns, faults)
    rows, left_out = labels.keep_rows(table)
    rows = [row for row in rows if row not in faults.rows]
    if kinds and labels.problem_type == TAGS:
        raise ValueError(f"Features are for texts, not for words with tags: {', '.join(kinds)}.")
    x = _read_texts(table, texts, labels.problem_type, rows, faults)
    features = read_features(table, len(texts), kinds or {}, rows, faults)
    y, names = labels.read(table, rows, faults) if labels.columns else (None, None)
    if labels.problem_type == TAGS and y is not None:
        _check_lengths(table, x[0], y, faults)
    rows = faults.keep(rows)
    if labels.problem_type != TAGS:
        _warn_of_prints(table, texts, rows)
    x = tuple([column[row] for row in rows] for column in x)
    x = x if len(x) > 1 or features else x[0]
    if features:
        x = dict(zip(texts, x, strict=True))
        x |= {name: [values[row] for row in rows] for name, (_, values) in features.items()}
    if y is not None:
        y = [y[row] for row in rows]
        if labels.problem_type is not None and names is None:
            names = labels.name(table, rows, y)
    # A row in memory is named by its number.
    lines = table.lines or range(len(table))
    left_out = {reason: [lines[row] for row in found] for reason, found in left_out.items()}
    return Examples(
        table.path,
        x,
        y,
        names,
        lines=table.lines and [lines[row] for row in rows],
        left_out={**left_out, **faults.left_out},
        features={name: kind for name, (kind, _) in features.items()},
    )


def _read_texts(table, texts, problem_type, rows, faults):
    """tuple of columns: a list of str, or for tags one dict of a row -> list of words."""
    if problem_type != TAGS:
        for number, name in enumerate(texts):
            check_filled(table, number, "text", name, rows, faults)
        return table.columns[: len(texts)]
    if len(texts) != 1:
        raise ValueError(f"Wanted one column of lists of words, got {', '.join(texts)}.")
    return (parse_lists(table, 0, "word", texts[0], rows, faults),)


def _warn_of_prints(table, texts, rows):
    """Warns if most texts of a column are lists written as text."""
    for fields, column in zip(table.columns, texts, strict=False):
        # Texts are many, so only texts that begin as a list are parsed.
        prints = [row for row in rows if fields[row].lstrip().startswith(BRACKETS)]
        if 2 * len(prints) > len(rows):
            prints = [row for row in prints if _is_print_of_texts(fields[row])]
        if 2 * len(prints) > len(rows):
            warnings.warn(
                f"{table.locate(prints[0])}: the text in the column {column!r} is a list written "
                f"as text, {fields[prints[0]][:40]!r}, as in {len(prints)} of {len(rows)} rows, "
                "and its brackets and quotes are read as a part of it. Read it by "
                "ast.literal_eval or json.loads, and join its texts; or pass "
                f"problem_type={TAGS!r} for words with tags.",
                stacklevel=4,
            )


def _is_print_of_texts(text):
    fields = parse_list(text)
    is_list = isinstance(fields, list) and bool(fields)
    return is_list and not all(field.replace(".", "", 1).isdecimal() for field in fields)


def _check_lengths(table, words, tags, faults):
    for row in {*words} & {*tags}:
        if len(tags[row]) != len(words[row]):
            faults.add(
                *(table, row, "another number of words than of tags"),
                f"got {len(words[row])} words and {len(tags[row])} tags",
                "Wanted a tag for each word.",
            )
