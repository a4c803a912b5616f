"""The base of the kinds of tasks, the values of --task."""

from abc import ABC, abstractmethod


class Kind(ABC):
    """One kind of task: its files, its task class, its scores and its answers.

    A kind is made from the flags of one command, before a framework is imported.

    Args:
        values: the flags.
    """

    #: The value of --task.
    name: str
    #: What it is about, for the help of --task.
    about: str
    #: The class of keras_bert_suite.
    task: str
    #: The word for its rows.
    unit: str
    #: The most tokens of a row, unless --sequence_length says otherwise.
    sequence_length = 128
    #: The flags that go with this kind, and not with all others.
    own_flags: tuple = ()

    def __init__(self, values):
        self.values = values

    @staticmethod  # noqa: B027
    def define_flags(values):
        """Defines the flags of `own_flags` for `finetune` and `evaluate`."""

    @staticmethod  # noqa: B027
    def define_training_flags(values):
        """Defines the flags of `own_flags` for `finetune` alone."""

    @classmethod
    def recognizes(cls, saved):
        """Whether a `SavedTask`, see `model_paths.read_saved_task`, is of this kind."""
        return saved.class_name == cls.task

    @classmethod
    def serves(cls, output_names):
        """Whether a SavedModel with these outputs is of this kind."""
        return False

    @property
    @abstractmethod
    def input_names(self):
        """tuple of str, the names of the texts of a row, for the model that `finetune` trains."""

    @abstractmethod
    def read(self, path):
        """Reads a labelled file.

        Returns:
            the examples, an object with a length and a `path`. The other methods take it.
        """

    @abstractmethod
    def find_arguments(self, train):
        """dict of arguments of the task's `from_preset`, such as `label_names`."""

    def find_compile_arguments(self):
        """dict of arguments of the task's `compile`, beside the optimizer."""
        return {}

    @abstractmethod
    def check(self, examples, arguments, source):
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

    @abstractmethod
    def columns_of(self, examples):
        """(x, y), as the task's `fit` takes them."""

    @abstractmethod
    def balance(self, train):
        """dict with the argument of `fit` that weights all labels alike."""

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

    @abstractmethod
    def evaluate(self):
        """Scores --model on --input, prints the scores, and writes what --json and --png name."""

    def read_texts(self):
        """Reads the texts of --input for `predict`, if this kind has files of its own.

        Returns:
            dict, name of a column -> texts; or None: --input has lines of text, or is a table.
        """
        return None

    @abstractmethod
    def predict(self, columns, saved_model=None):
        """Answers texts.

        Args:
            columns: dict, name of a column -> texts.
            saved_model: `SavedModel`, or None: --model is then a task.

        Returns:
            iterable of str, the lines of the output.
        """
