"""Finds the `ServedTask` of a task."""

import importlib

from keras_bert_suite.checkpoints.head_types.records import heads_of_task
from keras_bert_suite.heads.base.served import ServedTask


def serve(task):
    """The `ServedTask` of a task. A task without answers or preprocessor is a ValueError."""
    if getattr(getattr(task, "answers", None), "serve", None) is None:
        raise ValueError(
            f"A {type(task).__name__} cannot be exported: it has no answers to serve. Export a "
            "task of keras_bert_suite that has a head."
        )
    if task.preprocessor is None:
        raise ValueError(
            f"{task.name} has no preprocessor, so texts cannot be turned into token ids. Set "
            "`task.preprocessor` to a SegmentPacker before the export."
        )
    for name in getattr(task, "label_names", ()):
        if "\n" in name:
            raise ValueError(
                f"The label name {name!r} has a line feed, and the file of the label names has one "
                "in each line. Change `task.label_names` before the export."
            )
    return find_served(type(task))(task)


def find_served(cls):
    """The class of `ServedTask` for a class of task, or for its nearest base with a `HeadType`."""
    heads = (head for base in cls.__mro__ for head in heads_of_task(base.__name__))
    served = getattr(next(heads, None), "served", None)
    if served is None:
        return ServedTask
    module, _, name = served.partition(".")
    return getattr(importlib.import_module(f"keras_bert_suite.heads.{module}.served"), name)
