"""Reads tables of texts and labels, and checks them before hours of work."""

import collections
import math

from keras_bert_suite.data import tables

from .table_flags import read_columns

#: A message lists no more labels.
MANY_LABELS = 20


def read_examples(values, path, text_columns, needs_label=True):
    """Reads texts and their labels.

    Args:
        values: the flags.
        path: str.
        text_columns: dict from `choose_text_columns`.
        needs_label: bool, whether an empty label is an error.

    Returns:
        `Table`.

    Raises:
        ValueError: if a text or a label is missing, naming its line.
    """
    table = read_columns(values, path, {**text_columns, "label_column": values.label_column})
    for column in text_columns.values():
        check_texts(table, column)
    for row, label in enumerate(table.columns[values.label_column]):
        if needs_label and not label.strip():
            raise ValueError(f"{table.locate(row)}: the label is empty. Give the text a label.")
    return table


def check_labels(table, sets, label_names, source):
    """Raises a `ValueError` if a label is not one that the model knows, naming its line.

    Args:
        table: `Table`.
        sets: the labels of each row, an iterable of iterables of str.
        label_names: list of str.
        source: str, the source of `label_names`: the training file, or the model.
    """
    known = set(label_names)
    for row, labels in enumerate(sets):
        for label in labels:
            if label not in known:
                raise ValueError(
                    f"{table.locate(row)}: the label {label!r} does not occur in {source}, whose "
                    f"labels are {list_labels(label_names)}. Correct it, or train with texts that "
                    "have it."
                )


def find_label_names(values, train):
    """The label names of the training table: two or more, sorted.

    Raises:
        ValueError: if there are fewer than two.
    """
    labels = train.columns[values.label_column]
    label_names = tables.list_label_names(labels)
    if len(label_names) < 2:
        raise ValueError(
            f"Every row of {train.path} has the label {label_names[0]!r} in its column "
            f"{values.label_column!r}. Wanted two or more different labels."
        )
    check_lines(train, values.label_column, label_names)
    return label_names


def columns_of(table):
    """(texts, labels), or for pairs ((first texts, second texts), labels)."""
    *texts, labels = table.columns.values()
    return tuple(texts) if len(texts) > 1 else texts[0], labels


def weigh_labels(labels):
    """dict of label -> weight that gives every label the same weight in the loss.

    >>> weigh_labels(["no", "no", "no", "yes"])
    {'no': 0.6666666666666666, 'yes': 2.0}
    """
    counts = collections.Counter(labels)
    return {label: len(labels) / (len(counts) * count) for label, count in counts.items()}


def list_labels(label_names):
    """The first labels as text for a line, and how many more there are.

    >>> list_labels(["no", "yes"])
    'no, yes'
    """
    more = len(label_names) - MANY_LABELS
    return ", ".join(label_names[:MANY_LABELS]) + (f" and {more} more" if more > 0 else "")


def check_texts(table, column):
    """Raises a `ValueError` if a text of a column is missing, naming its line."""
    texts = table.columns[column]
    empty = [row for row, text in enumerate(texts) if not text.strip()]
    if empty:
        raise ValueError(
            f"{table.locate(empty[0])}: the text in the column {column!r} is missing, as "
            f"in {len(empty)} of {len(texts)} rows. Remove the row, or give it a text."
        )


def is_finite(label):
    """Whether a label is written as a finite number."""
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False


def check_lines(table, column, label_names):
    """Raises a `ValueError` if a label has a line feed, naming its line.

    The names of labels are stored one in each line, beside an exported model.
    """
    for name in label_names:
        if "\n" in name:
            row = next(row for row, label in enumerate(table.columns[column]) if name in label)
            raise ValueError(
                f"{table.locate(row)}: the label {name!r} has a line feed. If a quote is "
                "missing before it, add it; otherwise write the label in one line."
            )
