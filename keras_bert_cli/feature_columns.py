"""Columns of numbers, booleans and categories beside the texts of a table: --feature_columns."""

import dataclasses

from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.feature_fields import KINDS, name_kinds, read_features
from keras_bert_suite.data.readers.row_faults import RowFaults
from keras_bert_suite.serving.saved_tasks import find_features

from .command_flags import UsageError
from .table_flags import table_arguments


def define_feature_flag(flags):
    """Defines the flag --feature_columns."""
    explanation = (
        "Columns beside the texts that the model reads, joined by commas: price,shop. A column of "
        "numbers is a number, one of true and false a boolean, and others are categories; "
        "zip=category says so. Default of predict and evaluate: as the model names them."
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
    return dict(zip(columns or features, name_kinds(features).items(), strict=True))


def read_rows(values, path, texts, chosen):
    """Reads the texts and the features of the rows of a table, without labels.

    Args:
        values: the flags.
        path: str.
        texts: list of the columns of the texts.
        chosen: dict of the column -> (name, kind), from `choose_features`.

    Returns:
        dict of the column of a text, or of the name of a feature -> list of N values.
    """
    read = read_columns(path, [*texts, *chosen], **table_arguments(values))
    faults, rows = RowFaults(path), range(len(read))
    kinds = {column: kind for column, (_, kind) in chosen.items()}
    features = read_features(read, len(texts), kinds, rows, faults)
    faults.keep(rows)
    columns = dict(zip(texts, read.columns, strict=False))
    return columns | {chosen[c][0]: [*v.values()] for c, (_, v) in features.items()}


def name_columns(examples, texts, features):
    """`Examples` whose texts and features have the names that the model knows them by."""
    x = dict(zip([*texts, *features], examples.x.values(), strict=True))
    kinds = dict(zip(features, examples.features.values(), strict=True))
    return dataclasses.replace(examples, x=x, features=kinds)
