"""Reads sets of labels from the fields of a table."""

import warnings

from keras_bert_suite.data.readers.list_prints import BRACKETS, parse_list, seems_list_print

#: The values of a 0/1 column. pandas writes the bools of `get_dummies` as True and False.
BITS = {
    **{"0": False, "0.0": False, "false": False, "False": False, "FALSE": False},
    **{"1": True, "1.0": True, "true": True, "True": True, "TRUE": True},
}


def read_sets(table, rows, column, separator, are_named=False):
    """Reads the sets of labels of some rows.

    Args:
        table: `Examples`, whose last column has the labels.
        rows: list of int.
        column: str, the name of the column.
        separator: str, the separator of the names of a set.
        are_named: bool, whether the labels are names for sure, and not 0 and 1 for each label.

    Returns:
        list of lists of str; and list of names, "0", "1" and so on, if all sets are lists of as
        many numbers, 0 and 1, or else None.
    """
    fields = table.columns[-1]
    fields = [parse_list(fields[row]) for row in rows]
    _check_prints(table, rows, fields, column, separator)
    if not are_named and (bits := _read_bit_lists(table, rows, fields)):
        return bits
    labels = [split_labels(field, separator) for field in fields]
    _warn_of_separator(table.path, labels, separator)
    return labels, None


def read_bit_columns(table, rows, columns, exactly_one):
    """Reads the sets of labels of some rows from a column of 0 and 1 for each label.

    Args:
        table: `Examples`, whose last columns have the labels.
        rows: list of int.
        columns: list of str, the names of the columns, and of the labels.
        exactly_one: bool, whether each row has one label.

    Returns:
        list of lists of str.
    """
    labels, values = [], table.columns[-len(columns) :]
    for row in rows:
        fields = [column[row] for column in values]
        for name, field in zip(columns, fields, strict=True):
            if _is_list(field) or field.strip() not in BITS:
                raise ValueError(
                    f"{table.locate(row)}: the column {name!r} has {str(field)[:40]!r}. Wanted 0 "
                    "or 1 in label_columns. Correct it, or leave such rows out by "
                    "left_out_labels=[...]."
                )
        pairs = zip(columns, fields, strict=True)
        labels.append([name for name, field in pairs if BITS[field.strip()]])
        if exactly_one and len(labels[-1]) != 1:
            raise ValueError(
                f"{table.locate(row)}: the row has the labels {labels[-1]}, wanted one. Pass "
                f"problem_type='multi_label_classification' for sets of labels."
            )
    return labels


def split_labels(labels, separator):
    """list of str.

    >>> split_labels("joy, love", ",")
    ['joy', 'love']
    """
    names = labels.split(separator) if isinstance(labels, str) else labels
    return [name.strip() for name in names if name.strip()]


def _check_prints(table, rows, fields, column, separator):
    for row, field in zip(rows, fields, strict=True):
        if _is_list(field) or not field.lstrip().startswith(BRACKETS):
            continue
        if seems_list_print(field) and (separator in field or "'" in field or '"' in field):
            raise ValueError(
                f"{table.locate(row)}: the labels in the column {column!r} seem to "
                f"be a list, and cannot be read: {field[:60]!r}. Wanted labels with "
                f"{separator!r} between them, or a list of strings or whole "
                "numbers, as JSON, Python or NumPy writes it."
            )


def _read_bit_lists(table, rows, fields):
    """The sets of rows of as many numbers, 0 and 1, and the names "0", "1" and so on; or None."""
    lists = [(row, field) for row, field in zip(rows, fields, strict=True) if _is_list(field)]
    are_alike = len(lists) == len(fields) and len({len(field) for field in fields}) == 1
    if are_alike and len(fields[0]) > 1 and all({*field} <= {*BITS} for field in fields):
        if not any(map(_repeats, fields)):
            raise ValueError(
                f"{table.locate(rows[0])}: the labels {fields[0]} may be the ids of two labels, or "
                "0 and 1 for each of two labels, as in all rows. Write the names of labels."
            )
        labels = [[str(i) for i, bit in enumerate(field) if BITS[bit]] for field in fields]
        return labels, [str(i) for i in range(len(fields[0]))]
    for row, field in lists:
        if {*field} <= {*BITS} and _repeats(field) or any(map(_is_share, field)):
            raise ValueError(
                f"{table.locate(row)}: the labels are {field!s:.60}. Wanted names or ids of "
                "labels; or 0 and 1, a number for each label, as many in all rows."
            )
    return None


def _repeats(field):
    return len({*field}) < len(field)


def _is_list(field):
    return not isinstance(field, str)


def _is_share(name):
    """Whether a name is a number between two whole numbers."""
    try:
        return float(name) % 1 > 0
    except ValueError:
        return False


def _warn_of_separator(path, sets, separator):
    """Warns if no row has two labels, and another separator seems to be in them."""
    if any(len(labels) > 1 for labels in sets):
        return
    names = {name for labels in sets for name in labels}
    for name in (name for labels in sets for name in labels):
        mark = next((mark for mark in ";|、；，," if mark in name), None)
        if mark is None and " " in name and not names.isdisjoint(name.split()):
            mark = " "  # A part of the name is a label of another row.
        if mark:
            warnings.warn(
                f"{path}: no row has two labels with {separator!r} between them, and {name!r} is "
                f"read as one. If it is several, pass label_separator={mark!r}.",
                stacklevel=6,
            )
            return
