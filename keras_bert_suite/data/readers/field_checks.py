"""Checks that the fields of a column are texts, or lists."""

from keras_bert_suite.data.readers.list_prints import parse_list

#: Values of `problem_type`, as for a `TextClassifier`, and for the taggers.
CLASSES, SETS = "single_label_classification", "multi_label_classification"
NUMBERS, TAGS = "regression", "token_classification"


def check_filled(table, number, noun, column, rows=None):
    """Raises a `ValueError` if a field of a column is empty or a list, naming its line.

    `rows` are the rows to look at, list of int, or None for all.
    """
    rows = range(len(table)) if rows is None else rows
    check_no_lists(table, number, noun, column, rows)
    fields = table.columns[number]
    empty = [row for row in rows if not fields[row].strip()]
    if empty:
        raise ValueError(
            f"{table.locate(empty[0])}: the {noun} in the column {column!r} is missing, as in "
            f"{len(empty)} of {len(rows)} rows. Add the {noun}, or remove the row."
        )


def check_no_lists(table, number, noun, column, rows=None):
    """Raises a `ValueError` if a field of a column is a list, naming its line."""
    fields = table.columns[number]
    for row in range(len(table)) if rows is None else rows:
        if not isinstance(fields[row], str):
            remedy = f"problem_type={SETS!r} for lists of labels"
            if noun == "text":
                remedy = f"problem_type={TAGS!r} for lists of words with a tag each"
            raise ValueError(
                f"{table.locate(row)}: the {noun} in the column {column!r} is a list. Wanted one "
                f"text, or {remedy}."
            )


def check_lists(table, number, noun, column, rows):
    """Raises a `ValueError` if a field of a column is no list, naming its line."""
    for row in rows:
        field = table.columns[number][row]
        if isinstance(parse_list(field), str):
            raise ValueError(
                f"{table.locate(row)}: the {noun}s in the column {column!r} are {field[:40]!r}. "
                f"Wanted a list of {noun}s, as JSON or Python writes it."
            )
