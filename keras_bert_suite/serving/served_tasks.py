"""Finds the `ServedTask` of a task."""


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
    return task.head.find_served()(task)
