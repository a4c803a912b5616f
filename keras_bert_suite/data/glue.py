"""Reads the official files of the nine tasks of GLUE.

Source: Wang et al., 2018 (https://arxiv.org/abs/1804.07461), and the files of
https://gluebenchmark.com/tasks.
"""

import dataclasses
import warnings
from pathlib import Path

from keras_bert_suite.data.tables import read_table

#: `problem_type` of a `TextClassifier`.
CLASSES, NUMBERS = "single_label_classification", "regression"

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
        test: dict of the name of a file for the GLUE server -> the file of its texts.
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
    test: dict
    dev: dict = dataclasses.field(default_factory=lambda: DEV)
    problem_type: str = CLASSES
    unnamed_columns: tuple | None = None
    leaves_out_broken: bool = False


_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")
_BINARY = ("0", "1")

#: name -> task, in the order of the leaderboard.
GLUE_TASKS = {
    task.name: task
    for task in (
        GlueTask(
            *("cola", "CoLA", ("sentence",), "label", _BINARY, ("matthews",)),
            test={"CoLA.tsv": "test.tsv"},
            unnamed_columns=("4", "2"),
        ),
        GlueTask(
            *("sst2", "SST-2", ("sentence",), "label", _BINARY, ("accuracy",)),
            test={"SST-2.tsv": "test.tsv"},
        ),
        GlueTask(
            *("mrpc", "MRPC", ("#1 String", "#2 String"), "Quality", _BINARY, ("f1", "accuracy")),
            test={"MRPC.tsv": "test.tsv"},
        ),
        GlueTask(
            *("stsb", "STS-B", _PAIR, "score", ("score",), ("pearson", "spearman")),
            test={"STS-B.tsv": "test.tsv"},
            problem_type=NUMBERS,
        ),
        GlueTask(
            *("qqp", "QQP", ("question1", "question2"), "is_duplicate", _BINARY),
            metrics=("f1", "accuracy"),
            test={"QQP.tsv": "test.tsv"},
            # Some questions hold a line feed.
            leaves_out_broken=True,
        ),
        GlueTask(
            *("mnli", "MNLI", _PAIR, "gold_label", ("entailment", "neutral", "contradiction")),
            metrics=("accuracy",),
            test={
                "MNLI-m.tsv": "test_matched.tsv",
                "MNLI-mm.tsv": "test_mismatched.tsv",
                "AX.tsv": "../diagnostic/diagnostic.tsv",
            },
            dev={"matched": "dev_matched.tsv", "mismatched": "dev_mismatched.tsv"},
        ),
        GlueTask(
            *("qnli", "QNLI", ("question", "sentence"), "label", _ENTAILMENT, ("accuracy",)),
            test={"QNLI.tsv": "test.tsv"},
        ),
        GlueTask(
            *("rte", "RTE", _PAIR, "label", _ENTAILMENT, ("accuracy",)),
            test={"RTE.tsv": "test.tsv"},
        ),
        GlueTask(
            *("wnli", "WNLI", _PAIR, "label", _BINARY, ("accuracy",)),
            test={"WNLI.tsv": "test.tsv"},
        ),
    )
}


@dataclasses.dataclass(frozen=True)
class GlueRows:
    """Rows of a file.

    Attributes:
        path: str, the file.
        texts: tuple of lists of N str, one list for each column of texts.
        labels: list of N label names, or of N floats, or None.
    """

    path: str
    texts: tuple
    labels: list | None

    def __len__(self):
        return len(self.texts[0])

    @property
    def x(self):
        """The texts as `fit` takes them."""
        return self.texts if len(self.texts) > 1 else self.texts[0]

    def take(self, number):
        """The first `number` rows; all rows if `number` is None."""
        labels = self.labels and self.labels[:number]
        return GlueRows(self.path, tuple(column[:number] for column in self.texts), labels)


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


def read_glue(task, folder, file="train.tsv", labelled=True):
    """Reads a file of a task. Tabs separate the fields. Quotes are ordinary characters.

    >>> rows = read_glue(GLUE_TASKS["stsb"], "glue_data", "dev.tsv")
    >>> rows.texts[0][0], rows.texts[1][0], rows.labels[0]
    ('A man with a hard hat is dancing.', 'A man wearing a hard hat is dancing.', 5.0)

    Args:
        task: `GlueTask`.
        folder: as for `find_tasks`.
        file: str, a file of the task's folder.
        labelled: bool, whether the rows have labels.

    Returns:
        `GlueRows`.

    Raises:
        ValueError: if a row has more or fewer fields than the first line, or a label that the task
            does not have, naming file and line; if a column is missing.
        OSError: if the file cannot be read.

    Warns:
        UserWarning: if broken rows are left out. The official training file of QQP has some.
    """
    unnamed = labelled and task.unnamed_columns is not None
    columns = [*task.text_columns, *([task.label_column] if labelled else [])]
    table = read_table(
        Path(folder) / task.folder / file,
        list(task.unnamed_columns) if unnamed else columns,
        header=not unnamed,
        leave_out_broken=task.leaves_out_broken,
    )
    if table.left_out:
        warnings.warn(
            f"{table.path}: {len(table.left_out)} lines are left out, because they have another "
            f"number of fields, such as line {table.left_out[0]}. The official file has such "
            "lines.",
            stacklevel=2,
        )
    values = list(table.columns.values())
    if not labelled:
        return GlueRows(table.path, tuple(values), None)
    return GlueRows(table.path, tuple(values[:-1]), _read_labels(task, table, values[-1]))


def _read_labels(task, table, column):
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
            raise ValueError(f"{table.locate(row)}: the label is {value[:40]!r}, wanted {wanted}.")
        labels.append(label)
    return labels
