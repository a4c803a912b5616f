"""Reads tables of texts and labels, and checks them before hours of work."""

import collections
import math
import warnings

from keras_bert_suite.data import tables

from .table_flags import read_columns

#: More different labels than this may come from a wrong column.
MANY_LABELS = 20

#: How programs write a text that is missing.
MISSING = frozenset({"nan", "NaN", "None", "null", "NULL", "<NA>", "N/A"})


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


def check_labels(values, table, label_names, source):
    """Raises a `ValueError` if a label is not one that the model knows, naming its line.

    Args:
        values: the flags.
        table: `Table`.
        label_names: list of str.
        source: str, the source of `label_names`: the training file, or the model.
    """
    known = set(label_names)
    for row, label in enumerate(table.columns[values.label_column]):
        if label not in known:
            similar = [name for name in label_names if _plain(name) == _plain(label)]
            hint = f"Did you mean {_quote(similar[0])}? " if similar else ""
            raise ValueError(
                f"{table.locate(row)}: the label {_quote(label)} does not occur in {source}, whose "
                f"labels are {list_labels(label_names)}. {hint}Correct it, or train with texts "
                "that have it."
            )


def find_label_names(values, train):
    """The label names of the training table: two or more, sorted.

    Raises:
        ValueError: if there are fewer than two, if two differ only in spaces or case, or if
            they are the numbers of a regression, with an example.
    """
    labels = train.columns[values.label_column]
    label_names = tables.list_label_names(labels)
    if len(label_names) < 2:
        raise ValueError(
            f"Every row of {train.path} has the label {_quote(label_names[0])} in its column "
            f"{values.label_column!r}. Wanted two or more different labels."
        )
    check_lines(train, values.label_column, label_names)
    alike = {}
    for name in label_names:
        other = alike.setdefault(_plain(name), name)
        if other != name:
            raise ValueError(
                f"The labels {_quote(other)} ({train.locate(labels.index(other))}) and "
                f"{_quote(name)} ({train.locate(labels.index(name))}) differ only in "
                "spaces or case, so they would become two classes. Use one spelling."
            )
    if len(label_names) > MANY_LABELS:
        _check_many_labels(values, train, label_names)
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
    shown = [shorten_label(name) for name in label_names[:MANY_LABELS]]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def shorten_label(label):
    """The label, or the beginning of a long label. A wrong column may hold whole texts."""
    return label if len(label) < 60 else label[:57] + "..."


def check_texts(table, column):
    """Raises a `ValueError` if a text of a column is missing, naming its line."""
    texts = table.columns[column]
    empty = [row for row, text in enumerate(texts) if not text.strip()]
    if empty:
        raise ValueError(
            f"{table.locate(empty[0])}: the text in the column {column!r} is missing, as "
            f"in {len(empty)} of {len(texts)} rows. Remove the row, or give it a text."
        )
    suspects = [row for row, text in enumerate(texts) if text in MISSING]
    if suspects:
        warnings.warn(
            f"{table.locate(suspects[0])}: the text is {texts[suspects[0]]!r}, which is how "
            f"programs write that it is missing. There are {len(suspects)} such rows. Remove "
            "them if their texts are missing.",
            stacklevel=2,
        )


def is_finite(label):
    """Whether a label is written as a finite number."""
    return _is_number(label) and math.isfinite(float(label))


def check_lines(table, column, label_names):
    """Raises a `ValueError` if a label has a line feed, naming its line.

    The names of labels are stored one in each line, beside an exported model.
    """
    for name in label_names:
        if "\n" in name:
            row = next(row for row, label in enumerate(table.columns[column]) if name in label)
            raise ValueError(
                f"{table.locate(row)}: the label {_quote(name)} has a line feed. If a quote is "
                "missing before it, add it; otherwise write the label in one line."
            )


def _check_many_labels(values, train, label_names):
    where = f"the column {values.label_column!r} of {train.path}"
    if all(map(_is_number, label_names)) and not all(map(_is_whole, label_names)):
        raise ValueError(
            f"{where} holds {len(label_names)} different numbers, such as {label_names[0]!r}: "
            "that is a scale, and a classifier learns classes. Pass --task regress, cut the "
            "scale into a few classes, or name another column with --label_column."
        )
    if len(label_names) > len(train) / 2:
        warnings.warn(
            f"{where} holds {len(label_names)} different labels in {len(train)} rows, such as "
            f"{_quote(label_names[0])}, so most have a single text to learn from. Is it the right "
            "column? --label_column names another.",
            stacklevel=2,
        )


def _is_number(label):
    try:
        float(label)
    except ValueError:
        return False
    return True


def _is_whole(label):
    return float(label).is_integer()


def _quote(label):
    return repr(shorten_label(label))


def _plain(label):
    return " ".join(label.split()).casefold()
