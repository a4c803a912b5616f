"""Assigns all tensors of a checkpoint to a model, or none of them."""

import re
from collections import Counter

import numpy as np

from keras_bert_suite.checkpoints.head_types.records import (
    CONTINUATIONS,
    FINE_TUNED,
    MASKED_TOKENS,
    TARGETS,
    VECTORS,
)
from keras_bert_suite.checkpoints.left_out import are_random, report_load, sort_surplus
from keras_bert_suite.checkpoints.model_types.name_table import (
    OPTIONAL,
    is_of_head,
    matches_any,
    part_of,
)
from keras_bert_suite.checkpoints.model_types.static import STATIC
from keras_bert_suite.files.messages import list_names, shorten


def load_weights(model, checkpoint, skip=(), new=()):
    """Assigns the tensors of a checkpoint to the weights of a model.

    First the names and shapes in the files' headers are compared, then every tensor is read. Only
    then are weights assigned. So if this function raises, the model has not changed. Tensors are
    cast to the dtype of the weight.

    Args:
        model: `keras.Model`, built. Its weights are found by their `path`.
        checkpoint: a checkpoint from `open_checkpoint`.
        skip: regular expression, or several. A weight whose whole path matches keeps its
            values, as with `["classifier/.*"]` for a head that is to be trained. A tensor
            whose whole name matches is left out.
        new: list of regular expressions of the paths of weights that a task makes anew. They keep
            their values, and a warning names the head that the file has in their place.

    Raises:
        ValueError: if the checkpoint lacks a tensor, has a tensor of another shape, or has a
            tensor of a part of the model that lacks this weight, naming these tensors; if two
            tensors differ for which the model has one weight; if the name table has no name for a
            weight; if a file is damaged.

    Warns:
        UserWarning: if an optional part, such as the pooler, is absent and keeps its values; if
            a head is left out. That the heads of pretraining are left out of another task, and all
            known heads out of an encoder alone, is logged by the logger "keras_bert_suite".
    """
    skip = [skip] if isinstance(skip, str) else skip
    table = checkpoint.name_table
    weights = weights_by_path(model)
    shapes = spelled_shapes(checkpoint)
    rows = {path: table.their_name(path) for path in weights}
    kept = [*skip, *new]
    wanted = {path: row for path, row in rows.items() if not matches_any(path, kept)}
    left_alone = _absent_parts(wanted, shapes)
    wanted = {path: row for path, row in wanted.items() if path not in left_alone}
    surplus, heads = sort_surplus(checkpoint, shapes, rows, wanted, skip, new)

    problems = [*_find_misfits(wanted, weights, shapes), *surplus]
    problems = problems or list(_find_untied(wanted, checkpoint, shapes))
    if problems:
        raise ValueError(
            f"The weights in {checkpoint.path} do not fit the model {model.name!r}:\n  "
            + list_names(problems, separator="\n  ", max_characters=600)
            + f"\nThe checkpoint was read as {checkpoint.model_type.title}. If this is wrong, "
            "correct its model_type. "
            + _advise_prefix(checkpoint, wanted, shapes)
            + "Build the model from the checkpoint's own `backbone_config`. "
            "Name in `skip` the "
            'weights that are to keep their values, e.g. skip=["classifier/.*"] for a new head, '
            "and the tensors that are to be left out."
        )

    values = {
        path: transform(_read_floats(checkpoint, shapes[name][0]))
        for path, (name, transform) in wanted.items()
    }
    for path, value in values.items():
        # The value is copied, because it may be a view of a file. It is cast to float32, because
        # not every backend takes a NumPy array of bfloat16.
        dtype = np.result_type(value.dtype, np.float32)
        weights[path].assign(np.array(value, dtype=dtype, order="C"))
    # An adapter saves the new weights, too.
    vars(getattr(model, "backbone", model))["new_paths"] = frozenset(left_alone)
    # A pooler is new only where no output depends on it.
    made = [p for p in rows if matches_any(p, new) and not p.startswith("pooler/")]
    # A head that has nothing but a bias of zeros begins as any other bias of zeros.
    is_complete = not are_random(weights[path] for path in left_alone)
    report_load(checkpoint, model, [] if is_complete else left_alone, heads, made)


def weights_by_path(model):
    """dict of path -> weight of a model and of its backbone. Two with one path are a ValueError.

    Under PyTorch, a task on the hidden states of some layers lists the weights of these alone.
    """
    weights = {}
    parts = (model, getattr(model, "backbone", model))
    for weight in {id(weight): weight for part in parts for weight in part.weights}.values():
        if weight.path in weights:
            raise ValueError(
                f"Two weights of the model {model.name!r} have the path {weight.path!r}, so a "
                "checkpoint cannot tell them apart. Give their layers different names."
            )
        weights[weight.path] = weight
    return weights


def has_part(checkpoint, part):
    """Whether a checkpoint has weights of a part of our models, such as "pooler"."""
    paths = map(checkpoint.name_table.our_path, spelled_shapes(checkpoint))
    return any(row is not None and row[0].partition("/")[0] == part for row in paths)


def find_task(checkpoint):
    """The name of our class that opens a checkpoint with its head, or None without a head of ours.

    Args:
        checkpoint: a checkpoint from `open_checkpoint`.
    """
    kind = checkpoint.model_type
    if checkpoint.has_modules or kind is STATIC:
        return VECTORS.task
    if kind.name == "encoder-decoder":
        return TARGETS.task
    for head in FINE_TUNED:
        # The weights of a head with labels do not say whether it is ours.
        if head.layer in checkpoint.heads or not head.labels and has_part(checkpoint, head.layer):
            return head.task
    if not has_part(checkpoint, MASKED_TOKENS.layer):
        return None
    if kind.starts_with_end:
        return TARGETS.task
    pattern = checkpoint.encoder_config.get("attention_pattern")
    return (CONTINUATIONS if pattern == "left_to_right" else MASKED_TOKENS).task


def may_have_next_sentence(checkpoint):
    """Whether a `Pretrainer` of a checkpoint is to have a head for pairs of texts.

    The answer is False if the checkpoint has only the head for masked tokens, or if its kind of
    model, such as RoBERTa, has no head for pairs.
    """
    if checkpoint.model_type.names.their_name("next_sentence/kernel") is None:
        return False
    return has_part(checkpoint, "next_sentence") or not has_part(checkpoint, "masked_lm")


def count_sentence_relations(checkpoint):
    """How many relations the head for pairs of a checkpoint tells apart, or None without a head."""
    row = checkpoint.name_table.their_name("next_sentence/kernel")
    _, shape = spelled_shapes(checkpoint).get(row[0], (None, None)) if row else (None, None)
    return shape[0] if shape else None


def find_other_heads(checkpoint, kept):
    """Finds the heads of a checkpoint other than `kept`, by the names of its tensors.

    >>> find_other_heads(checkpoint, kept=["classifier"])
    ['cls.predictions', 'qa_outputs']

    Args:
        checkpoint: a checkpoint from `open_checkpoint`.
        kept: list of str, the layers of heads.

    Returns:
        list of str, see `part_of`.
    """
    table = checkpoint.name_table
    names = [name for name in spelled_shapes(checkpoint) if not matches_any(name, table.ignored)]
    paths = {name: (table.our_path(name) or ("",))[0] for name in names}
    others = {name for name, path in paths.items() if not path or is_of_head(path)}
    others -= {name for name, path in paths.items() if path.partition("/")[0] in kept}
    parts = {part_of(name) for name in names if name not in others}
    return list(dict.fromkeys(part_of(name) for name in names if part_of(name) not in parts))


def spelled_shapes(checkpoint):
    """dict of name as the name table spells it -> (name in the file, shape) of each tensor."""
    shapes = {}
    for name, shape in checkpoint.tensor_shapes().items():
        spelled = checkpoint.name_table.spell(name)
        if spelled in shapes:
            raise ValueError(
                f"{checkpoint.path} holds the same tensor twice, as "
                f"{shorten(shapes[spelled][0])!r} and as {shorten(name)!r}. Remove one of them."
            )
        shapes[spelled] = (name, tuple(shape))
    return shapes


def _absent_parts(wanted, shapes):
    """The paths of weights in optional parts that the file lacks as a whole."""
    absent = set()
    for pattern in OPTIONAL:
        part = [path for path in wanted if matches_any(path, [pattern])]
        if not any(wanted[path] and wanted[path][0] in shapes for path in part):
            absent.update(part)
    return [path for path in wanted if path in absent]


def _find_misfits(wanted, weights, shapes):
    """Yields messages about tensors that the model needs, and that are missing or misshapen."""
    for path, row in wanted.items():
        if row is None:
            yield f"{path}: no tensor is known for this weight"
            continue
        name, transform = row
        # A view, without data, has the shape of the tensor after the transform.
        wanted_shape = transform(np.broadcast_to(np.uint8(0), weights[path].shape)).shape
        if name not in shapes:
            yield f"{name}: missing, wanted for {path} with shape {wanted_shape}"
        elif shapes[name][1] != wanted_shape:
            name, shape = shapes[name]
            yield f"{name}: has shape {shorten(shape)}, wanted {wanted_shape} for {path}"


def _advise_prefix(checkpoint, wanted, shapes):
    """The sentence about the beginning of names without which most missing tensors are found."""
    missing = {row[0] for row in wanted.values() if row is not None and row[0] not in shapes}
    names = checkpoint.tensor_shapes()
    counts = Counter(name[: dot.end()] for name in names for dot in re.finditer(r"\.", name))
    found = {
        prefix: sum(
            checkpoint.name_table.spell(name.removeprefix(prefix)) in missing
            for name in names
            if name.startswith(prefix)
        )
        for prefix, count in counts.items()
        if 2 * count > len(missing)
    }
    best = max(found, key=found.get, default=None)
    if best is None or 2 * found[best] <= len(missing):
        return ""
    return (
        f"{found[best]} of the {len(missing)} missing tensors are found without {best!r} before "
        f"their names: pass rename={{{best!r}: ''}}. "
    )


def _find_untied(wanted, checkpoint, shapes):
    """Yields messages about tensors that differ although the model has one weight for both."""
    has_head = any(path.startswith("masked_lm/") for path in wanted)
    table = checkpoint.name_table
    remedy = " (skip='masked_lm/.*' leaves out the part that needs it)"
    pairs = [(*pair, remedy) for pair in table.copies if has_head]
    for copy, original, advice in (*pairs, *((*pair, "") for pair in table.tied)):
        if copy not in shapes:
            continue
        values = [checkpoint.tensor(shapes[name][0]) for name in (copy, original)]
        if not np.array_equal(*values):
            yield (
                f"{shapes[copy][0]}: differs from {original}, and the model has one weight for "
                f"both{advice}"
            )


def _read_floats(checkpoint, name):
    value = checkpoint.tensor(name)
    if value.dtype.kind not in "fV":  # V is ml_dtypes' bfloat16.
        raise ValueError(
            f"{shorten(name)} in {checkpoint.path} has dtype {value.dtype}, wanted floating point."
        )
    return value
