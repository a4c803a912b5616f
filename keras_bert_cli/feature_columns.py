"""Columns of numbers, booleans and categories beside the texts of a table: --feature_columns."""

import dataclasses
import math

from keras_bert_suite.data.readers.columns import read_columns

from .command_flags import UsageError
from .table_flags import table_arguments

KINDS = ("number", "boolean", "category")

BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def define_feature_flag(flags):
    """Defines the flag --feature_columns."""
    explanation = (
        "Columns beside the texts that the model reads, joined by commas: price,shop. A column of "
        "numbers is a number, one of true and false a boolean, and others are categories; "
        "zip=category says so. Default of predict and evaluate: those of the model, by their names."
    )
    flags.text("feature_columns", None, explanation)


def split_flag(values):
    """dict of the column of --feature_columns -> its kind, or None if the file says it."""
    kinds = {}
    for part in filter(None, (values.feature_columns or "").split(",")):
        column, _, kind = part.partition("=")
        if kind and kind not in KINDS:
            raise UsageError(
                f"--feature_columns has {part!r}, wanted one of {', '.join(KINDS)} after the ="
            )
        if not column or column in kinds:
            raise UsageError(
                f"--feature_columns {values.feature_columns} must name different columns"
            )
        kinds[column] = kind or None
    return kinds


def name_features(values):
    """tuple of the names of the features that `finetune` trains, from --feature_columns."""
    columns = split_flag(values)
    return tuple(columns) if values.header else tuple(f"column_{number}" for number in columns)


def find_features(model):
    """The `features` of a task, a `SavedModel` or a `TaskRuntime`, a dict; empty for none."""
    description = getattr(model, "description", None)
    found = description.get("features") if description else getattr(model, "features", None)
    return found or {}


def choose_features(values, model):
    """The columns of a file that are features of a model, and their kinds.

    Returns:
        dict of the column -> (name of the feature, kind).
    """
    features, columns = find_features(model), list(split_flag(values))
    if columns and len(columns) != len(features):
        raise UsageError(
            f"--feature_columns has {len(columns)} columns, and the model has "
            f"{len(features)} features{': ' if features else ''}{', '.join(features)}. Name a "
            "column for each, in this order"
        )
    if any(split_flag(values).values()):
        raise UsageError(
            "--feature_columns says the kinds of columns, which the model knows. Name the columns"
        )
    kinds = [_name_kind(kind) for kind in features.values()]
    pairs = zip(features, kinds, strict=True)
    return dict(zip(columns or features, pairs, strict=True))


def _name_kind(said):
    """The kind of a column in the `features` of a task: a list has the categories."""
    if isinstance(said, list):
        return "category"
    return said["kind"] if isinstance(said, dict) else said


def find_kinds(values, path):
    """The kinds of the columns of --feature_columns: those given, or as the fields of a file say.

    Returns: as `choose_features`.
    """
    given = split_flag(values)
    read = read_columns(path, list(given), **table_arguments(values))
    return {
        column: (name, kind or _find_kind(fields))
        for (column, kind), name, fields in zip(
            given.items(), name_features(values), read.columns, strict=True
        )
    }


def _find_kind(fields):
    filled = [field for field in fields if field != ""]
    if any(isinstance(field, list) for field in filled):
        return "category"  # Whose reading names the row.
    if all(field.lower() in ("true", "false") for field in filled):
        return "boolean"
    try:
        return "number" if all(math.isfinite(float(field)) for field in filled) else "category"
    except ValueError:
        return "category"


def read_features(values, path, chosen, lines=None):
    """Reads the features of the rows of a table.

    Args:
        values: the flags.
        path: str.
        chosen: dict of the column -> (name, kind).
        lines: list of the lines of the rows that are kept, or None for all.

    Returns:
        dict of the name of a feature -> list of values, None for an empty field.
    """
    read = read_columns(path, list(chosen), **table_arguments(values))
    rows = range(len(read))
    if lines is not None and read.lines is not None:
        place_of = {line: row for row, line in enumerate(read.lines)}
        rows = [place_of[line] for line in lines]
    return {
        name: [_read_field(read, row, name, kind, fields[row]) for row in rows]
        for (name, kind), fields in zip(chosen.values(), read.columns, strict=True)
    }


def _read_field(read, row, name, kind, field):
    if field == "":
        return None
    if isinstance(field, str):
        if kind == "category":
            return field
        if kind == "boolean" and field.lower() in BOOLEANS:
            return BOOLEANS[field.lower()]
        try:
            if kind == "number" and math.isfinite(float(field)):
                return float(field)
        except ValueError:
            pass
    wanted = {"number": "a finite number", "boolean": "true or false, 1 or 0"}.get(kind, "a name")
    remedy = "" if kind == "category" else f", or train with --feature_columns {name}=category"
    raise ValueError(
        f"{read.locate(row)}: the feature {name!r} is a {kind}, got {str(field)[:40]!r}. Wanted "
        f"{wanted}, or an empty field for a missing value. Correct it{remedy}."
    )


def add_features(values, examples, names, chosen):
    """`Examples` whose `x` is a dict: the texts by their names, and the features.

    Args:
        values: the flags.
        examples: `Examples` of texts.
        names: the names of the texts.
        chosen: dict of the column -> (name, kind).
    """
    features = read_features(values, examples.path, chosen, examples.lines)
    if any(len(column) != len(examples) for column in features.values()):
        raise UsageError(
            f"{examples.path} does not number its rows, so --feature_columns cannot be read where "
            "--left_out_labels leaves rows out. Save it as .tsv, .csv or .jsonl"
        )
    x = {**dict(zip(names, examples.columns, strict=True)), **features}
    return dataclasses.replace(examples, x=x, feature_names=tuple(features))
