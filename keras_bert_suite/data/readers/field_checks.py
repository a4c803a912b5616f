"""Checks that the fields of a column are texts, or lists."""

from keras_bert_suite.data.readers.list_prints import parse_list

#: Values of `problem_type`, as for a `TextClassifier`, and for the taggers.
CLASSES, SETS = "single_label_classification", "multi_label_classification"
NUMBERS, TAGS = "regression", "token_classification"


def check_filled(table, number, noun, column, rows, faults):
    """Adds the rows to `RowFaults` whose field of a column is empty or a list.

    `rows` are the rows to look at, list of int.
    """
    check_no_lists(table, number, noun, column, rows, faults)
    fields = table.columns[number]
    for row in rows:
        if isinstance(fields[row], str) and not fields[row].strip():
            faults.add(
                *(table, row, f"no {noun} in the column {column!r}"),
                f"the {noun} in the column {column!r} is missing",
                f"Add the {noun}, or remove the row.",
            )


def check_no_lists(table, number, noun, column, rows, faults):
    """Adds the rows to `RowFaults` whose field of a column is a list."""
    fields = table.columns[number]
    for row in rows:
        if not isinstance(fields[row], str):
            remedy = f"problem_type={SETS!r} for lists of labels"
            if noun == "text":
                remedy = f"problem_type={TAGS!r} for lists of words with a tag each"
            faults.add(
                *(table, row, f"a list in the column {column!r}"),
                f"the {noun} in the column {column!r} is a list",
                f"Wanted one text, or {remedy}.",
            )


def parse_lists(table, number, noun, column, rows, faults):
    """dict of a row -> its list of str in a column. Rows with other fields go to `RowFaults`."""
    lists = {}
    for row in rows:
        field = parse_list(table.columns[number][row])
        if isinstance(field, str):
            faults.add(
                *(table, row, f"no list in the column {column!r}"),
                f"the {noun}s in the column {column!r} are {field[:40]!r}",
                f"Wanted a list of {noun}s, as JSON or Python writes it.",
            )
        else:
            lists[row] = field
    return lists
