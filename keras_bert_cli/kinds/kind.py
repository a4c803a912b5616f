"""The base of the kinds of tasks, the values of --task."""

import functools
import json
import math
import numbers
from abc import ABC, abstractmethod

from keras_bert_suite.checkpoints.head_types.records import heads_of_command
from keras_bert_suite.heads.base.head import read_heads

from ..ask_saved_model import SavedModel
from ..command_flags import UsageError
from ..table_flags import read_text_columns


class Kind(ABC):
    """One kind of task: its files, its task class, its scores and its answers.

    `finetune` makes a kind from the flags, before a framework is imported. For other commands
    `model` is the task, the `SavedModel` or the `TaskRuntime` of --model.
    """

    #: The value of --task.
    name: str
    #: Its subject, for the help of --task.
    about: str
    #: A row of its files.
    rows = "texts"
    #: Whether only a part is read of a text that is longer.
    cuts_texts = False
    #: Whether its labels are classes, which have weights in the loss.
    has_classes = False
    #: The flags that go with this kind, and not with all others.
    own_flags: tuple = ()
    #: Flags of tables that do not go with the labelled files of this kind.
    idle_table_flags: tuple = ()
    #: The form of answers without --format.
    answer_format = "tsv"
    #: Why --format tsv is an error, if it is one.
    no_table: str | None = None

    def __init__(self, values, model=None):
        self.values = values
        self.model = model

    @property
    def task(self):
        """The class of keras_bert_suite that `finetune` trains."""
        return heads_of_command(self.name)[0].task

    @property
    def head(self):
        """The `Head` of `task`."""
        return read_heads()[self.task]

    @staticmethod  # noqa: B027
    def define_flags(flags):
        """Defines the flags of `own_flags` for `finetune` and `evaluate`."""

    @staticmethod  # noqa: B027
    def define_training_flags(flags):
        """Defines the flags of `own_flags` for `finetune` alone."""

    @classmethod
    def recognizes(cls, model):
        """Whether a task, a `SavedModel` or a `TaskRuntime` is of this kind."""
        if description := getattr(model, "description", None):
            heads = {description["head"]}
        else:
            tasks = getattr(model, "tasks", [model])  # Those of an `Ensemble` are of one kind.
            heads = {base.__name__ for base in type(tasks[0]).__mro__}
        return any(head.task in heads for head in heads_of_command(cls.name))

    @property
    @abstractmethod
    def input_names(self):
        """tuple of str, the names of the texts of a row, for the model that `finetune` trains."""

    @property
    def feature_names(self):
        """tuple of str, the names of the columns beside the texts."""
        return ()

    @abstractmethod
    def read(self, path):
        """Reads a labelled file as `Examples`, which the other methods take."""

    def check_table_flags(self):
        """Raises a `UsageError` if a flag of `idle_table_flags` is given."""
        for name in self.idle_table_flags:
            if name in self.values.given:
                raise UsageError(f"--{name} is for other tables, not for --task {self.name}")

    def check(self, task, examples):
        """Raises a `ValueError` if the labels of held-out examples are not a task's."""
        try:
            task.data.read(examples.x, examples.y, labelled=True)
        except ValueError as error:
            raise ValueError(f"{examples.path}: {error} Rows are counted from 0.") from error

    def find_arguments(self, train):
        """dict of arguments of the task's `from_preset`, such as `label_names`."""
        return {}

    def find_preprocessor(self):
        """dict of the `preprocessor` of the task, if it is not that of --checkpoint."""
        return {}

    def find_compile_arguments(self):
        """dict of arguments of the task's `compile`, beside the optimizer."""
        return {}

    @property
    def class_weight(self):
        """The argument `class_weight` of `fit`: "balanced" or None."""
        if self.values.class_weight == "none":
            return None
        if not self.has_classes:
            raise UsageError(f"--class_weight is for labels. Leave it out with --task {self.name}")
        return self.values.class_weight

    def callbacks(self, dev):
        """list of the callbacks that score the held-out examples, or None, after each epoch."""
        return []

    def complete(self, task, dev):
        """Sets the values that a trained task learns from held-out examples, such as thresholds.

        The result says whether there was something to learn.
        """
        return False

    def score(self, task, examples):
        """dict of the scores of a task: numbers, and tables of numbers."""
        self.check(task, examples)
        score = functools.partial(self.score_outputs, task)
        return task.score_with(score, examples.x, examples.y, self.values.batch_size)

    def score_outputs(self, task, outputs, rows, labels):
        """dict of the scores of outputs of a task, see `Task.score_with`."""
        return task.answers.score(outputs, rows, labels)

    def draw(self, scores, path):  # noqa: B027
        """Draws scores as a picture, if "png" is in `own_flags`."""

    def read_texts(self):
        """Reads the texts of --input for `predict`: a dict, name of a column -> texts."""
        return read_text_columns(self.values, "input", self.model.input_names)

    def order_texts(self, columns):
        """The texts of columns, dict of a name -> texts, under the names that the model has.

        Columns with the names of the model's texts may come in any order. A SavedModel finds its
        columns itself.
        """
        if isinstance(self.model, SavedModel):
            return columns
        names = self.model.input_names or self.input_names
        if len(columns) != len(names):
            raise ValueError(
                f"{self.values.model} was trained with rows of {len(names)} texts, "
                f"{', '.join(names)}, and got rows of {len(columns)}, {', '.join(columns)}. Name "
                "the columns of the texts, with --text_column and --text_pair_column."
            )
        in_order = names if set(names) == set(columns) else columns
        return {name: columns[given] for name, given in zip(names, in_order, strict=True)}

    def find_asked(self):
        """dict of arguments of the task's `predict`, such as `max_length`."""
        return {}

    def find_answers(self, columns):
        """The answers to texts as columns: dict of the names of `AnswerColumns` -> N values."""
        from keras_bert_suite.serving.answer_columns import open_answers

        answers = open_answers(self.model, **self.find_asked())
        return answers.find(self.order_texts(columns), self.values.batch_size)

    def predict_rows(self, columns):
        """The results of `predict` of the task for texts."""
        from keras_bert_suite.serving.answer_columns import predict_rows

        return predict_rows(self.model, self.order_texts(columns), self.values.batch_size)

    def predict(self, columns):
        """Yields the lines of the output for columns, dict of a name -> texts."""
        if self.values.format == "tsv" and self.no_table:
            raise UsageError(self.no_table)
        found = self.find_answers(columns)
        if (self.values.format or self.answer_format) == "tsv":
            return self.format_table(found)
        return format_json(self.show_texts(columns), list_rows(found))

    def show_texts(self, columns):
        """The columns that stand beside the answers in JSON, of the columns of the input."""
        return columns

    def format_table(self, found):  # noqa: B027
        """Yields the lines of a table of answers, unless there is a `no_table`."""


def format_json(columns, answers):
    """Yields a line of JSON for each row, with its texts and its answer, a dict."""
    for row, answer in enumerate(answers):
        texts = {name: column[row] for name, column in columns.items()}
        yield dump_json({**texts, **answer}) + "\n"


def list_rows(columns):
    """Yields the answer of each row as a dict, of columns; numbers are rounded for people."""
    columns = {name: x.tolist() if hasattr(x, "tolist") else x for name, x in columns.items()}
    for row in zip(*columns.values(), strict=True):
        yield {name: round_numbers(value) for name, value in zip(columns, row, strict=True)}


def round_numbers(value):
    """A value of any depth with at most six digits after the point.

    >>> round_numbers({"score": 0.12345678, "start": 3})
    {'score': 0.123457, 'start': 3}
    """
    if isinstance(value, dict):
        return {name: round_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [round_numbers(item) for item in value]
    is_float = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    return round(float(value), 6) if is_float else value


def dump_json(value, indent=None):
    """JSON with null in the place of infinity and NaN, which JSON does not have.

    >>> dump_json({"pearson": float("nan"), "rows": 8})
    '{"pearson": null, "rows": 8}'
    """
    return json.dumps(_leave_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _leave_finite(value):
    if isinstance(value, dict):
        return {name: _leave_finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_leave_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
