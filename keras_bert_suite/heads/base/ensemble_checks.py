"""Checks that tasks can answer together, and finds what differs between them."""

from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.input_checks import default_names
from keras_bert_suite.preprocessing import SegmentPacker

#: Settings of a head that say how its texts are cut. They may differ where answers are per text.
CUTTING = ("features", "max_windows", "stride", "query_length", "word_cutting")

#: Settings of an ensemble that may be tuned. At first it has those of its tasks.
TUNED = ("thresholds", "no_answer_threshold")

#: Settings of a `SegmentPacker`.
_PACKING = ("sequence_length", "truncation", "head_length", "segment_ids", "padding_lengths")


def check_tasks(tasks: list[Any]) -> None:
    """Raises a ValueError if the answers of tasks have no mean. It names both and the remedy."""
    if not tasks:
        raise ValueError("An ensemble needs at least one task, got none.")
    for number, task in enumerate(tasks):
        if not hasattr(getattr(task, "answers", None), "mean_forms"):
            raise ValueError(
                f"An ensemble is made of tasks, got {with_article(task)} as tasks[{number}]. Open "
                "a task by `from_preset` of its class."
            )
    first = tasks[0]
    if not first.answers.mean_forms:
        raise ValueError(
            f"The answers of {with_article(first)} have no mean. An ensemble is for classes, sets "
            "of labels, numbers, attributes, relations, choices, rankings of a TextRanker, "
            "vectors, tags, spans and questions."
        )
    for number, task in enumerate(tasks[1:], start=1):
        if task.HEAD.task != first.HEAD.task:
            raise ValueError(
                f"tasks[0] is {with_article(first)}, and tasks[{number}] {with_article(task)}. An "
                "ensemble is of one kind of task: leave one of them out."
            )
        _check_settings(first, task, number)
        _check_labels(first, task, number)
        _check_texts(first, task, number)
        if first.answers.stand_at_tokens:
            _check_cutting(first, task, number)


def find_label_order(first: Any, task: Any) -> np.ndarray | None:
    """int (C,), where a task has the labels of the first task; None if both have one order."""
    names, others = list_labels(first), list_labels(task)
    if names == others:
        return None
    places = {name: place for place, name in enumerate(others)}
    return np.array([places[name] for name in names])


def list_labels(task: Any) -> list[str]:
    """The names of the labels of a task; [] if it has none."""
    return list(getattr(getattr(task.data, "labels", None), "names", ()))


def describe_cutting(task: Any) -> dict[str, Any]:
    """What decides which arrays a task makes of texts, by name."""
    packer = task.preprocessor
    tokenizer = getattr(packer, "tokenizer", None)
    facts = {"tokenizer": getattr(tokenizer, "digest", None if tokenizer is None else tokenizer)}
    if isinstance(packer, SegmentPacker):
        facts.update({name: getattr(packer, name) for name in _PACKING})
    elif packer is not None:
        # Packers of frames, and those of KerasHub, say the length alone.
        facts["preprocessor"] = type(packer).__name__
        facts["sequence_length"] = getattr(packer, "sequence_length", None)
    for name in CUTTING:
        if name in task.HEAD.settings:
            value = getattr(task, name)
            facts[name] = value.get_config() if hasattr(value, "get_config") else value
    encoder = task.data.encoder
    return {**facts, "frame_dim": encoder.frame_dim, "condition_dim": encoder.condition_dim}


def cut_alike(tasks: list[Any]) -> bool:
    """Whether all tasks make the same arrays of texts, but for those that some encoders lack."""
    first = describe_cutting(tasks[0])
    return all(describe_cutting(task) == first for task in tasks[1:])


def _check_settings(first, task, number):
    names = [name for name in task.HEAD.settings if name not in (*CUTTING, "attributes")]
    for name in (*names, *(["prompts"] if hasattr(task, "prompts") else [])):
        ours, others = getattr(first, name), getattr(task, name)
        if name == "thresholds":
            ours, others = _by_label(first, ours), _by_label(task, others)
        if ours == others:
            continue
        remedy = f"Set both to one value: `tasks[{number}].{name} = tasks[0].{name}`."
        if name in TUNED:
            remedy = (
                "A threshold that was tuned for one task is not the ensemble's. Set `task."
                f"{name} = None` for each, and call `tune_{name.removeprefix('no_answer_')}` of "
                "the ensemble with held-out rows."
            )
        elif task.is_fixed(name, ours):
            remedy = f"Leave one of the tasks out, or build and train both with one {name}."
        raise ValueError(
            f"tasks[0] has {name}={ours!r}, and tasks[{number}] {name}={others!r}. {remedy}"
        )


def _by_label(task, thresholds):
    names = list_labels(task)
    return thresholds and dict(sorted(zip(names, thresholds, strict=True)))


def _check_labels(first, task, number):
    names, others = list_labels(first), list_labels(task)
    if set(names) != set(others):
        missing = [
            f"{owner} alone has {', '.join(own[:20])}"
            for owner, own in (
                ("tasks[0]", [name for name in names if name not in others]),
                (f"tasks[{number}]", [name for name in others if name not in names]),
            )
            if own
        ]
        raise ValueError(
            f"tasks[0] has {len(names)} labels, and tasks[{number}] {len(others)}: "
            f"{'; '.join(missing)}. The labels of all tasks must have the same names, in any "
            "order. If only the names differ, rename them: `task.label_names = [...]`."
        )
    if names != others and not first.answers.are_of_fixed_labels:
        raise ValueError(
            f"tasks[0] has the labels {', '.join(names)}, and tasks[{number}] "
            f"{', '.join(others)}, in another order, and rows may have labels of their own. Set "
            f"`tasks[{number}].label_names = tasks[0].label_names`."
        )
    widths = [t.output.shape[-1] if hasattr(t.output, "shape") else None for t in (first, task)]
    if not names and None not in widths and widths[0] != widths[1]:
        raise ValueError(
            f"The vectors of tasks[0] have {widths[0]} numbers, and those of tasks[{number}] "
            f"{widths[1]}. Build both with the same `dimensions`, or leave one out."
        )


def _check_texts(first, task, number):
    known = [t.input_names for t in (first, task)]
    known = [None if n is None or n == default_names(len(n)) else tuple(n) for n in known]
    counts = [t.input_names and len(t.input_names) for t in (first, task)]
    if None in counts or (counts[0] == counts[1] and (None in known or known[0] == known[1])):
        return
    raise ValueError(
        f"The rows of tasks[0] have the texts {', '.join(first.input_names)}, and those of "
        f"tasks[{number}] {', '.join(task.input_names)}. If they are the same texts in the same "
        f"order, set `tasks[{number}].input_names = tasks[0].input_names`."
    )


def _check_cutting(first, task, number):
    ours, others = describe_cutting(first), describe_cutting(task)
    for name, value in ours.items():
        if value == others.get(name):
            continue
        if name == "tokenizer":  # A digest says nothing to a reader.
            said = f"tasks[{number}] has another tokenizer than tasks[0]"
        else:
            said = f"tasks[0] has {name}={value!r}, and tasks[{number}] {others.get(name)!r}"
        raise ValueError(
            f"{said}. The answers of {with_article(first)} stand at tokens, so all tasks must cut "
            "texts alike. Build them with one preprocessor and the same settings, or leave one out."
        )
