"""The base of the kinds of tasks, the values of --task."""

import functools
import json
import math
from abc import ABC, abstractmethod

from keras_bert_suite.checkpoints.head_types.records import heads_of_command

from ..ask_saved_model import SavedModel
from ..command_flags import UsageError
from ..model_paths import is_saved_model
from ..outputs import write_output


class Kind(ABC):
    """One kind of task: its files, its task class, its scores and its answers.

    A kind is made from the flags of one command, before a framework is imported.

    Args:
        values: the flags.
        loaded: the `SavedModel` of --model, if it is loaded already.
    """

    #: The value of --task.
    name: str
    #: What it is about, for the help of --task.
    about: str
    #: The most tokens of a row, unless --sequence_length says otherwise.
    sequence_length = 128
    #: The flags that go with this kind, and not with all others.
    own_flags: tuple = ()
    #: Flags of tables that do not go with the labelled files of this kind.
    idle_table_flags: tuple = ()

    def __init__(self, values, loaded=None):
        self.values = values
        self._loaded = loaded

    @property
    def task(self):
        """The class of keras_bert_suite."""
        return heads_of_command(self.name)[0].task

    @functools.cached_property
    def saved_model(self):
        """The `SavedModel` of --model, or None if a model of another format is there.

        Raises:
            ValueError: if it answers as another kind of task.
        """
        path = self.values.model
        if self._loaded is None and not is_saved_model(path):
            return None
        saved_model = self._loaded or SavedModel(path)
        if not self.serves(saved_model.output_names):
            raise ValueError(
                f"{path} does not answer as --task {self.name}: its outputs are "
                f"{', '.join(saved_model.output_names)}. Pass the --task that it was trained for."
            )
        return saved_model

    @staticmethod  # noqa: B027
    def define_flags(values):
        """Defines the flags of `own_flags` for `finetune` and `evaluate`."""

    @staticmethod  # noqa: B027
    def define_training_flags(values):
        """Defines the flags of `own_flags` for `finetune` alone."""

    @classmethod
    def recognizes(cls, saved):
        """Whether a `SavedTaskConfig`, see `model_paths.read_saved_task`, is of this kind."""
        return any(saved.class_name == head.task for head in heads_of_command(cls.name))

    @classmethod
    @abstractmethod
    def serves(cls, output_names):
        """Whether a SavedModel with these outputs is of this kind."""

    @property
    @abstractmethod
    def input_names(self):
        """tuple of str, the names of the texts of a row, for the model that `finetune` trains."""

    @abstractmethod
    def read(self, path):
        """Reads a labelled file.

        Returns:
            `Examples`. The other methods take them.
        """

    def check_table_flags(self):
        """Raises a `UsageError` if a flag of `idle_table_flags` is given."""
        for name in self.idle_table_flags:
            if name in self.values and self.values[name].present:
                raise UsageError(f"--{name} is for other tables, not for --task {self.name}")

    def find_arguments(self, train):
        """dict of arguments of the task's `from_preset`, such as `label_names`."""
        return {}

    def find_compile_arguments(self):
        """dict of arguments of the task's `compile`, beside the optimizer."""
        return {}

    def check(self, examples, arguments, source):  # noqa: B027
        """Checks held-out examples before the training.

        Args:
            examples: from `read`.
            arguments: dict, from `find_arguments`.
            source: str, the path of the training file.

        Raises:
            ValueError: if the examples do not fit the arguments, naming the line.
        """

    @abstractmethod
    def introduce(self, train, arguments):
        """str, the line that `finetune` prints before the training."""

    def balance(self, train):
        """dict with the argument of `fit` that weights all labels alike."""
        raise UsageError(f"--class_weight is for labels. Leave it out with --task {self.name}")

    def optimizer_arguments(self):
        """dict of arguments of `AdamW` that no flag sets."""
        return {}

    def callbacks(self, dev):
        """list of the callbacks that score the held-out examples after each epoch.

        Args:
            dev: from `read`, or None.
        """
        return []

    def complete(self, task, dev):
        """Sets what a trained task learns from the held-out examples, such as thresholds.

        Args:
            task: the task.
            dev: from `read`, or None.

        Returns:
            str, a line to print, or None.
        """
        return None

    @abstractmethod
    def describe(self, task, examples):
        """str, a line with the scores of a task."""

    def evaluate(self):
        """Scores --model on --input, prints the scores, and writes what --json and --png name."""
        values = self.values
        if values.png:
            from .. import plots  # noqa: F401, the absence of matplotlib is an error before the work
        scores, draw = self.score()
        if values.json:
            text = dump_json(scores, indent=2) + "\n"
            self._write(values.json, lambda path: path.write_text(text, "utf-8"))
        if values.png:
            self._write(values.png, draw)

    def _write(self, path, write):
        print(f"wrote {write_output(path, write, self.values.overwrite)}")

    @abstractmethod
    def score(self):
        """Scores --model on --input, and prints the scores.

        Returns:
            (dict of the scores, for JSON; function that draws a picture of them to a path, or None
            if "png" is not in `own_flags`).
        """

    def read_texts(self):
        """Reads the texts of --input for `predict`, if this kind has files of its own.

        Returns:
            dict, name of a column -> texts; or None: --input has lines of text, or is a table.
        """
        return None

    def order_texts(self, input_names, columns):
        """The texts of columns as `predict` takes them.

        Args:
            input_names: names of the texts of the model, or None.
            columns: dict, name of a column -> texts. Columns with the names of the model's texts
                may come in any order.

        Raises:
            ValueError: if there are more or fewer columns than names.
        """
        if input_names is not None and len(columns) != len(input_names):
            remedy = "Name two columns, with --text_column and --text_pair_column, of a table."
            if len(input_names) == 1:
                remedy = "Leave out --text_pair_column."
            raise ValueError(
                f"{self.values.model} was trained with rows of {len(input_names)} texts, "
                f"{', '.join(input_names)}, and got rows of {len(columns)}, {', '.join(columns)}. "
                f"{remedy}"
            )
        in_order = input_names if set(input_names or ()) == set(columns) else columns
        texts = tuple(columns[name] for name in in_order)
        return texts if len(texts) > 1 else texts[0]

    @abstractmethod
    def predict(self, columns):
        """Answers texts.

        Args:
            columns: dict, name of a column -> texts.

        Returns:
            iterable of str, the lines of the output.
        """


def format_json(columns, answers):
    """Yields a line of JSON for each row, with its texts and its answer.

    Args:
        columns: dict, name of a column -> N texts.
        answers: iterable of N dicts.
    """
    for row, answer in enumerate(answers):
        texts = {name: column[row] for name, column in columns.items()}
        yield dump_json({**texts, **answer}) + "\n"


def dump_json(value, indent=None):
    """JSON with null in the place of infinity and of what is no number, which JSON does not have.

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
