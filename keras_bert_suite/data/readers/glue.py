"""Reads the official files of the nine tasks of GLUE.

Source: Wang et al., 2018 (https://arxiv.org/abs/1804.07461), and the files of
https://gluebenchmark.com/tasks.
"""

import csv
import dataclasses
import os
import warnings
from pathlib import Path

from keras_bert_suite.data.readers.columns import BROKEN, read_columns
from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.field_checks import CLASSES, NUMBERS
from keras_bert_suite.data.readers.row_faults import RowFaults

DEV = {"dev": "dev.tsv"}


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task of GLUE: its files, its labels, its metrics.

    Attributes:
        name: str, as Hugging Face spells it.
        folder: str, the folder of its files.
        text_columns: names of the columns of texts.
        label_column: name of the column of labels.
        label_names: the labels as the GLUE server spells them, in the order of their ids; for
            numbers the name of the target.
        metrics: names of the metrics of the leaderboard. Their mean is the score of the task.
        own_tests: `test`, if it is not "test.tsv" for a file with the name of the folder.
        dev: dict of the name of a split -> the file of its rows.
        problem_type: `CLASSES` or `NUMBERS`.
        unnamed_columns: numbers of the columns of texts and of the labels, for a training file and
            dev files without a line of names.
        leaves_out_broken: bool, whether broken rows are left out, because the official training
            file has some.
    """

    name: str
    folder: str
    text_columns: tuple
    label_column: str
    label_names: tuple
    metrics: tuple
    own_tests: dict | None = None
    dev: dict = dataclasses.field(default_factory=lambda: DEV)
    problem_type: str = CLASSES
    unnamed_columns: tuple | None = None
    leaves_out_broken: bool = False

    @property
    def test(self):
        """dict of the name of a file for the GLUE server -> the file of its texts."""
        return self.own_tests or {f"{self.folder}.tsv": "test.tsv"}


_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")
_BINARY = ("0", "1")

#: name -> task, in the order of the leaderboard.
GLUE_TASKS = {
    task.name: task
    for task in (
        GlueTask(
            *("cola", "CoLA", ("sentence",), "label", _BINARY, ("matthews",)),
            unnamed_columns=("4", "2"),
        ),
        GlueTask("sst2", "SST-2", ("sentence",), "label", _BINARY, ("accuracy",)),
        GlueTask(
            *("mrpc", "MRPC", ("#1 String", "#2 String"), "Quality", _BINARY, ("f1", "accuracy"))
        ),
        GlueTask(
            *("stsb", "STS-B", _PAIR, "score", ("score",), ("pearson", "spearman")),
            problem_type=NUMBERS,
        ),
        GlueTask(
            *("qqp", "QQP", ("question1", "question2"), "is_duplicate", _BINARY),
            metrics=("f1", "accuracy"),
            # Some questions hold a line feed.
            leaves_out_broken=True,
        ),
        GlueTask(
            *("mnli", "MNLI", _PAIR, "gold_label", ("entailment", "neutral", "contradiction")),
            metrics=("accuracy",),
            own_tests={
                "MNLI-m.tsv": "test_matched.tsv",
                "MNLI-mm.tsv": "test_mismatched.tsv",
                "AX.tsv": "../diagnostic/diagnostic.tsv",
            },
            dev={"matched": "dev_matched.tsv", "mismatched": "dev_mismatched.tsv"},
        ),
        GlueTask("qnli", "QNLI", ("question", "sentence"), "label", _ENTAILMENT, ("accuracy",)),
        GlueTask("rte", "RTE", _PAIR, "label", _ENTAILMENT, ("accuracy",)),
        GlueTask("wnli", "WNLI", _PAIR, "label", _BINARY, ("accuracy",)),
    )
}


def find_tasks(folder, names):
    """Finds the tasks whose training file and dev files are in a folder.

    Args:
        folder: str or path of the folder that holds `CoLA`, `SST-2` and so on.
        names: names of tasks.

    Returns:
        (list of `GlueTask`; dict of task name -> the first missing file of the task).
    """
    present, missing = [], {}
    for name in names:
        task = GLUE_TASKS[name]
        files = [Path(folder) / task.folder / file for file in ("train.tsv", *task.dev.values())]
        absent = [str(file) for file in files if not file.is_file()]
        if absent:
            missing[name] = absent[0]
        else:
            present.append(task)
    return present, missing


def read_glue(
    folder: str | os.PathLike[str],
    task: str,
    file: str = "train.tsv",
    labelled: bool = True,
    errors: str = "raise",
) -> Examples:
    """Reads an official file of a GLUE task. Tabs separate the fields. Quotes have no meaning.

    >>> dev = read_glue("glue_data", "stsb", "dev.tsv")
    >>> dev.x[0][0], dev.x[1][0], dev.y[0]
    ('A man with a hard hat is dancing.', 'A man wearing a hard hat is dancing.', 5.0)

    Args:
        folder: str or path of the folder that holds `CoLA`, `SST-2` and so on.
        task: "cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte" or "wnli".
        file: str, a file of the task's folder.
        labelled: bool, whether the rows have labels.
        errors: "raise", or "skip" to leave out rows that cannot be read, as for `read_table`.

    Returns:
        `Examples` of at least one row, for `TextClassifier`. `x`: texts, or (first texts, second
        texts). `y`: names of labels, or floats for "stsb".

    Raises:
        ValueError: if there is no such task; if a row has more or fewer fields than the first line,
            or a label that the task does not have, naming file and line; if a column is missing.
        OSError: if the file cannot be read.

    Warns:
        UserWarning: if broken rows are left out. The official training file of QQP has some.
    """
    if task not in GLUE_TASKS:
        raise ValueError(f"GLUE has the tasks {', '.join(GLUE_TASKS)}, got {task!r}.")
    found = GLUE_TASKS[task]
    numbers = found.unnamed_columns if labelled else None
    columns = [*found.text_columns, *([found.label_column] if labelled else [])]
    path = Path(folder) / found.folder / file
    faults = RowFaults(str(path), errors)
    table = read_columns(
        path,
        list(numbers or columns),
        header=numbers is None,
        leave_out_broken=found.leaves_out_broken,
        quoting=csv.QUOTE_NONE,
        faults=faults,
    )
    if lines := table.left_out.get(BROKEN):
        warnings.warn(
            f"{table.path}: {len(lines)} lines are left out, because they have another number of "
            f"fields, such as line {lines[0]}. The official file has such lines.",
            stacklevel=2,
        )
    texts = table.columns[: len(found.text_columns)]
    x = texts if len(texts) > 1 else texts[0]
    y = _read_labels(found, table, table.columns[-1], faults) if labelled else None
    names = list(found.label_names)
    return faults.leave_out(dataclasses.replace(table, x=x, y=y, label_names=names))


def _read_labels(task, table, column, faults):
    # Some copies of the files have ids.
    names = {str(number): name for number, name in enumerate(task.label_names)}
    names.update({name: name for name in task.label_names})
    labels = []
    for row, value in enumerate(column):
        try:
            label = float(value) if task.problem_type == NUMBERS else names[value]
            valid = task.problem_type != NUMBERS or 0 <= label <= 5
        except (KeyError, ValueError):
            valid = False
        if not valid:
            wanted = "a number from 0 to 5"
            if task.problem_type != NUMBERS:
                wanted = f"one of {', '.join(task.label_names)}"
            got = f"the label is {value[:40]!r}, wanted {wanted}"
            faults.add(table, row, "another label", got, "Correct it.")
            label = None
        labels.append(label)
    return labels
