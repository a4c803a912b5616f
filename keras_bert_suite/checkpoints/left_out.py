"""Says which weights of a file a model did not take, and which weights the file did not have."""

import logging
import re
import warnings

import keras

from keras_bert_suite.checkpoints.head_types.records import HEADS_BY_LAYER
from keras_bert_suite.checkpoints.model_types.name_table import is_of_head, matches_any, part_of
from keras_bert_suite.files.messages import list_names, shorten

#: The heads of pretraining. A fine-tuning leaves them behind.
PRETRAINING_HEADS = frozenset(
    layer for layer, head in HEADS_BY_LAYER.items() if head.task.endswith("Pretrainer")
)


def sort_surplus(checkpoint, shapes, rows, wanted, skip, new):
    """Sorts the tensors of a file that a model does not take.

    `shapes` is the result of `spelled_shapes`. `rows` has an entry for each weight of the model:
    path -> (the name in the file, transform), or None. `wanted` has the entries of the weights that
    are loaded. `skip` and `new` are lists of patterns of paths. The user has named the weights of
    `skip`, and the task makes the weights of `new`.

    Returns:
        (problems, heads): list of messages about tensors in parts that the model has; dict of the
        name in the file -> our layer of each tensor of a head that is left out. The layer is None
        if this package does not have the head.
    """
    table = checkpoint.name_table
    path_of = {row[0]: path for path, row in rows.items() if row is not None}
    taken = {row[0] for row in wanted.values() if row is not None}
    parts = {part_of(name) for name in taken}
    copies = {copy for copy, _ in (*table.copies, *table.tied)}
    problems, heads = [], {}
    for spelled, (name, shape) in shapes.items():
        path = path_of.get(spelled, "")
        is_known = spelled in taken or spelled in copies or matches_any(spelled, table.ignored)
        if is_known or any(matches_any(text, skip) for text in (spelled, name, path)):
            continue
        layer = _find_layer(table, spelled)
        if layer is not None:
            # `from_preset` has said so of a new head that replaces one with labels.
            if not (layer in checkpoint.heads and matches_any(path, new)):
                heads[name] = layer
        elif path:
            continue  # Another weight that the task makes anew.
        elif part_of(spelled) not in parts or re.search(r"[./]pooler[./]", spelled):
            # Our model does not have this pooler. RoBERTa's classifiers of transformers 3 have it
            # beside their head's.
            heads[name] = None
        else:
            problems.append(
                f"{shorten(name)}: shape {shorten(shape)}, the model has no such weight"
            )
    return problems, heads


def _find_layer(table, name):
    """Our layer of the head that a tensor belongs to, or None."""
    if matches_any(name, table.others):
        return "masked_lm"
    path, _ = table.our_path(name) or ("", None)
    return path.partition("/")[0] if is_of_head(path) else None


def are_random(weights):
    """Whether the values of new weights are random. A bias of zeros or a scale of ones is not."""
    # Weights may be on several machines, so no process need have all of one.
    filled = (weight.value for weight in weights if 0 not in weight.shape)
    return any(bool(keras.ops.max(value) > keras.ops.min(value)) for value in filled)


def report_load(checkpoint, model, left_alone, heads, new):
    """Warns, once, of weights without a tensor and of heads without a weight.

    Heads of pretraining that a fine-tuning leaves behind, and all heads where an encoder alone is
    opened, are logged at the level of warnings instead, as transformers does. `left_alone` are
    paths of optional weights that the file lacks, `heads` is from `sort_surplus`, and `new` are
    paths of weights that a task makes anew.
    """
    is_encoder = not hasattr(model, "backbone")
    expected = [
        name
        for name, layer in heads.items()
        if layer in PRETRAINING_HEADS or (is_encoder and layer is not None)
    ]
    surprising = [name for name in heads if name not in expected]
    reports = []
    if left_alone:
        reports.append(
            f"{checkpoint.path} has no weights for {list_names(left_alone)}. In a new model they "
            "are random. Train them before you use their output."
        )
    if surprising:
        reports.append(
            f"{checkpoint.path} has heads that {model.name!r} does not have: "
            f"{list_names(surprising)}. They are left out."
        )
        if new:
            reports.append(f"New and random, so train them: {list_names(new)}.")
    if reports:
        warnings.warn(" ".join(reports), stacklevel=4)
    log_left_out(checkpoint.path, dict.fromkeys(map(part_of, expected)))


def log_left_out(path, parts):
    """Logs which parts of a file are left out where no warning is due.

    Args:
        path: str or path of the file.
        parts: iterable of str. Without parts nothing is logged.
    """
    if parts := list_names(parts):
        logging.getLogger("keras_bert_suite").warning("%s: left out the head %s.", path, parts)
