"""Finds training rows whose labels look wrong, before a training: `finetune --errors`."""

from pathlib import Path

from .command_flags import UsageError
from .error_files import check_errors_file, write_errors
from .outputs import check_output, write_output


def define_check_flags(flags):
    """Defines the flags of the check."""
    explanation = (
        "File for the training rows that models trained on the others answer wrongly, before the "
        "training: .csv or .jsonl, or .html, a page for a browser. Labels that look wrong are "
        "marked. It takes as long as --folds - 1 trainings."
    )
    flags.path("errors", None, explanation)
    explanation = "Parts of the training rows, with --errors. Each is answered by its own model."
    flags.integer("folds", 5, explanation, at_least=2)


def check_label_check(values, resumes):
    """Checks the flags before hours of work.

    Args:
        values: the flags.
        resumes: bool, whether the run goes on, so that its file may be there.
    """
    if not values.errors:
        if "folds" in values.given:
            raise UsageError("--folds needs --errors, the file for the rows with wrong answers")
        return
    check_errors_file(values.errors)
    check_output(values.errors, values.overwrite or resumes)


def check_labels(values, data, make_task, train, writes):
    """Trains and answers the folds, and writes the file.

    Args:
        values: the flags.
        data: `Kind`.
        make_task: function without arguments that returns a new compiled task.
        train: `Examples`.
        writes: bool, whether this process writes the file.
    """
    import keras_bert_suite as kbs

    check_inspects(getattr(kbs, data.task), data.task)
    wrong = kbs.inspect_by_folds(
        make_task,
        train.x,
        train.y,
        values.folds,
        seed=values.seed,
        batch_size=values.batch_size,
        epochs=values.epochs,
        class_weight=data.class_weight,
        sequence_packing=values.sequence_packing,
        verbose=2,
    )
    if writes:
        title = f"Wrong answers in {Path(values.train).name}, by {values.folds} folds"
        save_errors(values.errors, wrong, train, data.input_names, title, overwrite=True)


def check_inspects(task, name):
    """Raises a `UsageError` if a task, or its class, has no `inspect`."""
    if not hasattr(task, "inspect"):
        raise UsageError(f"--errors is for labels of rows or of words, not for a {name}")


def save_errors(path, wrong, examples, names, title, overwrite):
    """Writes a file of errors atomically, and reports its content."""
    suspects = sum(answer.label_looks_wrong for answer in wrong)
    write_output(path, lambda p: write_errors(p, wrong, examples, names, title), overwrite)
    print(f"wrote {path}: {len(wrong)} wrong answers, {suspects} labels look wrong")
