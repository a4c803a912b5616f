"""Reads the fields of columns beside the texts of a table: numbers, booleans and categories."""

import math
import warnings
from collections.abc import Mapping

from keras_bert_suite.files.messages import list_names

NUMBER, BOOLEAN, CATEGORY = KINDS = ("number", "boolean", "category")

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
#: What stands for a missing number or boolean. A category may have such a name, as Namibia's NA.
_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none")
_WANTED = {NUMBER: "a finite number", BOOLEAN: "true or false, 1 or 0", CATEGORY: "a name"}


def name_kinds(features):
    """dict of a column, str -> its kind, or None if its fields say it.

    `features` is as for `read_table`, or None.
    """
    said = features if isinstance(features, Mapping) else dict.fromkeys(features or ())
    kinds = {str(column): _name_kind(kind) for column, kind in said.items()}
    for column, kind in kinds.items():
        if kind not in (None, *KINDS):
            raise ValueError(
                f"The kind of the column {column!r} must be one of {', '.join(KINDS)}, got "
                f"{kind!r}."
            )
    return kinds


def _name_kind(said):
    if isinstance(said, (list, tuple)):
        return CATEGORY
    return said.get("kind") if isinstance(said, Mapping) else said


def read_features(table, first, kinds, rows, faults):
    """Reads columns beside texts.

    Args:
        table: `Examples`, whose `x` is a tuple of columns.
        first: int, the place of the first of these columns.
        kinds: dict of a column -> its kind, or None if its fields say it, in the order of `x`.
        rows: list of int, the rows to read.
        faults: `RowFaults`, for rows with a field of another kind.

    Returns:
        dict of a column -> (its kind, dict of a row -> float, bool, str, or None for a missing
        value).
    """
    read = {}
    for (name, kind), fields in zip(kinds.items(), table.columns[first:], strict=False):
        if kind is None:
            kind = _find_kind([fields[row] for row in rows])
            if kind == CATEGORY:
                _warn_of_numbers(table, name, {row: fields[row] for row in rows})
        values = {row: _read_field(table, row, name, kind, fields[row], faults) for row in rows}
        read[name] = kind, values
    return read


def _find_kind(fields):
    if any(isinstance(field, list) for field in fields):
        return CATEGORY  # Whose reading names the row.
    filled = [field for field in fields if field.lower() not in _MISSING]
    if not filled:
        return CATEGORY  # Such as a column with NA alone, which may be Namibia.
    if all(field.lower() in ("true", "false") for field in filled):
        return BOOLEAN
    return NUMBER if all(_is_number(field) for field in filled) else CATEGORY


def _warn_of_numbers(table, name, fields):
    """Warns of a column of categories in which most fields, dict of a row -> str, are numbers."""
    filled = {
        row: field
        for row, field in fields.items()
        if isinstance(field, str) and field.lower() not in _MISSING
    }
    others = [row for row, field in filled.items() if not _is_number(field)]
    if not others or 2 * len(others) >= len(filled):
        return
    shown = list_names(f"{filled[row]!r} ({table.locate(row)})" for row in others[:3])
    warnings.warn(
        f"The column {name!r} has {len(filled) - len(others)} numbers, and {len(others)} other "
        f"fields: {shown}. So all are read as categories. Say which kind it is: for a {NUMBER}, "
        f"the other rows are errors, or are left out with errors='skip'; for a {CATEGORY}, there "
        "is no warning.",
        stacklevel=5,
    )


def _is_number(field):
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _read_field(table, row, name, kind, field, faults):
    if field == "" or (kind != CATEGORY and isinstance(field, str) and field.lower() in _MISSING):
        return None
    if isinstance(field, str):
        if kind == CATEGORY:
            return field
        if kind == BOOLEAN and field.lower() in _BOOLEANS:
            return _BOOLEANS[field.lower()]
        if kind == NUMBER and _is_number(field):
            return float(field)
    other = "" if kind == CATEGORY else f", or read and train {name!r} as a {CATEGORY}"
    faults.add(
        *(table, row, f"no {kind} in the column {name!r}"),
        f"the feature {name!r} is a {kind}, got {str(field)[:40]!r}",
        f"Wanted {_WANTED[kind]}, or an empty field for a missing value. Correct it{other}.",
    )
    return None
