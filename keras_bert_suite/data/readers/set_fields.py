"""Reads sets of labels from the fields of a table."""

import warnings

from keras_bert_suite.data.readers.list_prints import BRACKETS, parse_list, seems_list_print

#: The values of a 0/1 column. pandas writes the bools of `get_dummies` as True and False.
BITS = {
    **{"0": False, "0.0": False, "false": False, "False": False, "FALSE": False},
    **{"1": True, "1.0": True, "true": True, "True": True, "TRUE": True},
}


def read_sets(table, rows, column, separator, are_named, faults):
    """Reads the sets of labels of some rows.

    Args:
        table: `Examples`, whose last column has the labels.
        rows: list of int.
        column: str, the name of the column.
        separator: str, the separator of the names of a set.
        are_named: bool, whether the labels are names for sure, and not 0 and 1 for each label.
        faults: `RowFaults`, for rows whose labels cannot be read.

    Returns:
        dict of a row -> its labels, list of str; and list of names, "0", "1" and so on, if all sets
        are lists of as many numbers, 0 and 1, or else None.
    """
    fields = {row: parse_list(table.columns[-1][row]) for row in rows}
    for row in _find_broken_prints(fields, separator):
        faults.add(
            *(table, row, f"a list that cannot be read in the column {column!r}"),
            f"the labels in the column {column!r} seem to be a list, and cannot be read: "
            f"{fields.pop(row)[:60]!r}",
            f"Wanted labels with {separator!r} between them, or a list of strings or whole "
            "numbers, as JSON, Python or NumPy writes it.",
        )
    if not are_named and (bits := _read_bit_lists(table, fields, faults)):
        return bits
    labels = {row: split_labels(field, separator) for row, field in fields.items()}
    _warn_of_separator(table.path, labels.values(), separator)
    return labels, None


def read_bit_columns(table, rows, columns, exactly_one, faults):
    """Reads the sets of labels of some rows from a column of 0 and 1 for each label.

    Args:
        table: `Examples`, whose last columns have the labels.
        rows: list of int.
        columns: list of str, the names of the columns, and of the labels.
        exactly_one: bool, whether each row has one label.
        faults: `RowFaults`, for rows with other values.

    Returns:
        dict of a row -> its labels, list of str.
    """
    labels, values = {}, table.columns[-len(columns) :]
    for row in rows:
        fields = dict(zip(columns, (column[row] for column in values), strict=True))
        wrong = [name for name, field in fields.items() if not _is_bit(field)]
        for name in wrong:
            faults.add(
                *(table, row, f"no 0 or 1 in the column {name!r}"),
                f"the column {name!r} has {str(fields[name])[:40]!r}",
                "Wanted 0 or 1 in label_columns. Correct it, or leave such rows out by "
                "left_out_labels=[...].",
            )
        if wrong:
            continue
        labels[row] = [name for name, field in fields.items() if BITS[field.strip()]]
        if exactly_one and len(labels[row]) != 1:
            faults.add(
                *(table, row, "none or several labels"),
                f"the row has the labels {labels[row]}, wanted one",
                "Pass problem_type='multi_label_classification' for sets of labels.",
            )
    return labels


def _is_bit(field):
    return isinstance(field, str) and field.strip() in BITS


def split_labels(labels, separator):
    """list of str.

    >>> split_labels("joy, love", ",")
    ['joy', 'love']
    """
    names = labels.split(separator) if isinstance(labels, str) else labels
    return [name.strip() for name in names if name.strip()]


def _find_broken_prints(fields, separator):
    """list of the rows whose field seems to be a list and is none."""
    return [
        row
        for row, field in fields.items()
        if not _is_list(field)
        and field.lstrip().startswith(BRACKETS)
        and seems_list_print(field)
        and (separator in field or "'" in field or '"' in field)
    ]


def _read_bit_lists(table, fields, faults):
    """The sets of rows of as many numbers, 0 and 1, and the names "0", "1" and so on; or None."""
    lists = {row: field for row, field in fields.items() if _is_list(field)}
    are_alike = len(lists) == len(fields) and len({len(field) for field in lists.values()}) == 1
    first, bits = next(iter(lists.items()), (None, []))
    if are_alike and len(bits) > 1 and all({*field} <= {*BITS} for field in lists.values()):
        if not any(map(_repeats, lists.values())):
            raise ValueError(
                f"{table.locate(first)}: the labels {bits} may be the ids of two labels, or "
                "0 and 1 for each of two labels, as in all rows. Write the names of labels."
            )
        labels = {
            row: [str(i) for i, bit in enumerate(field) if BITS[bit]]
            for row, field in lists.items()
        }
        return labels, [str(i) for i in range(len(bits))]
    for row, field in lists.items():
        if {*field} <= {*BITS} and _repeats(field) or any(map(_is_share, field)):
            faults.add(
                *(table, row, "numbers that are no labels"),
                f"the labels are {field!s:.60}",
                "Wanted names or ids of labels; or 0 and 1, a number for each label, as many in "
                "all rows.",
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
