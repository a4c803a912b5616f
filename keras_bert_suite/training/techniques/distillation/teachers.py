"""The teachers of a student: opened, compared with it, and named in files by a digest."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import check_not_negative, with_article
from keras_bert_suite.training.techniques.distillation.stored_teacher import StoredTeacher


@dataclasses.dataclass(frozen=True)
class SavedTeacher:
    """What a file says of a teacher, which is not in the file itself.

    Attributes:
        path: str, the folder or the `.keras` file that it was opened from; None for a task that was
            in memory.
        digest: str, see `find_digest`; None for a path that was not opened.
        widths: list of int, the widths of its hidden states; empty if they were not read.
        heads: list of int, the attention heads of its layers; None where they are not known.
    """

    path: str | None
    digest: str | None
    widths: Sequence[int] = ()
    heads: Sequence[int | None] = ()

    @classmethod
    def of(cls, task: Any, path: str | None, inner: Any) -> "SavedTeacher":
        """Describes a teacher, with its `InnerStates` or None."""
        sizes = ([], []) if inner is None else (list(inner.widths), list(inner.heads))
        return cls(path, find_digest(task), *sizes)

    @classmethod
    def describe(cls, given: Any) -> "SavedTeacher":
        """A teacher that no student has opened yet: an entry of `list_teachers`."""
        if isinstance(given, cls):
            return given
        if isinstance(given, keras.Model):
            return cls.of(given, None, None)
        return cls(name_place(given), None)

    @property
    def num_layers(self) -> int:
        return len(self.heads)

    def count_heads(self, index: int) -> int | None:
        return self.heads[index]

    def count_features(self, index: int) -> int:
        return self.widths[index]

    def reopen(self, model: Any) -> tuple[Any, str | None]:
        """(the teacher, None), or (None, why it cannot be opened)."""
        remedy = "To train on, call compile(technique=Distillation(teacher)) with this teacher."
        if self.path is None:
            return None, (
                f"The teacher with the digest {self.digest} was a task in memory, so no file has "
                f"its path. {remedy}"
            )
        if not ("://" in self.path or os.path.exists(self.path)):
            return None, f"The teacher was read from {self.path}, which is not there. {remedy}"
        if StoredTeacher.is_in(self.path):
            return StoredTeacher.open(self.path), None
        teacher = open_teacher(self.path, model)
        if self.digest not in (None, found := find_digest(teacher)):
            return None, (
                f"The teacher in {self.path} has the digest {found}, and the student was trained "
                f"by one with the digest {self.digest}. Restore it, or call compile(technique="
                "Distillation(teacher)) for a new training."
            )
        return teacher, None

    def get_config(self) -> Config:
        return dataclasses.asdict(self)


def find_teacher(given: Any, model: Any) -> tuple[Any, str | None, str | None]:
    """(the task of an entry of `list_teachers`, its path or None, why there is no task or None)."""
    if isinstance(given, SavedTeacher):
        teacher, problem = given.reopen(model)
        return teacher, given.path, problem
    if isinstance(given, keras.Model):
        return given, None, None
    if StoredTeacher.is_in(given):
        return StoredTeacher.open(given), name_place(given), None
    return open_teacher(given, model), name_place(given), None


def list_teachers(given: Any) -> list[Any]:
    """The teachers of an argument: tasks, paths, and dicts of `SavedTeacher` of a file."""
    teachers = given if isinstance(given, list | tuple) else [given]
    for teacher in teachers:
        if is_ensemble(teacher):
            raise ValueError(
                f"A teacher is one task, got {teacher!r}. Pass the tasks of the ensemble, which "
                "then weigh alike: a list such as ensemble.tasks."
            )
        if not isinstance(teacher, keras.Model | str | os.PathLike | dict):
            raise ValueError(
                "teacher must be a task of keras_bert_suite, the path of one, or a list of these, "
                f"got {teacher!r:.80}."
            )
        if isinstance(teacher, keras.Model) and not hasattr(teacher, "HEAD"):
            raise ValueError(
                f"A teacher is a task of keras_bert_suite, got {with_article(teacher)}, which has "
                "no labels and no tokenizer. Pass the task; for an encoder alone a MaskedLM on it."
            )
    if not teachers:
        raise ValueError("teacher is an empty list. Pass one task or several.")
    return [SavedTeacher(**t) if isinstance(t, dict) else t for t in teachers]


def is_ensemble(teacher: Any) -> bool:
    """Whether a teacher is an `Ensemble`, which this room does not import."""
    return isinstance(getattr(teacher, "tasks", None), list)


def take_ensemble(ensemble: Any, weights: Any) -> tuple[list[Any], list[float]]:
    """The tasks and the weights of an ensemble.

    Raises:
        ValueError: if it averages logits, or if there are other weights.
    """
    if ensemble.average == "logits":
        raise ValueError(
            f"{ensemble!r} averages logits, and a student learns the mean of predictions. Pass "
            "Ensemble(tasks, average='probabilities') if its tasks have them, or the tasks alone: "
            "ensemble.tasks."
        )
    if weights is not None:
        raise ValueError(
            f"teacher_weights={weights!r} are for a list of tasks, and {ensemble!r} has weights. "
            "Leave them out, or set ensemble.weights."
        )
    return ensemble.tasks, ensemble.weights


def share_weights(weights: Sequence[float] | None, number: int) -> list[float]:
    """The weights of a number of teachers, brought to the sum 1; None for equal ones.

    Raises:
        ValueError: if there are not as many, or one is negative, or all are 0.
    """
    if weights is None:
        return [1 / number] * number
    for weight in weights:
        check_not_negative("teacher_weights", weight)
    if len(weights) != number or not sum(weights):
        raise ValueError(
            f"teacher_weights must have a number for each of the {number} teachers, not all of "
            f"them 0, got {list(weights)}."
        )
    return [weight / sum(weights) for weight in weights]


def open_teacher(path: Any, model: Any) -> Any:
    """The task in a `.keras` file, or in a folder that the class of a student opens."""
    path = os.fspath(path)
    if path.endswith(".keras"):
        return keras.saving.load_model(path, compile=False)
    return type(model).from_preset(path, compile=False)


def name_place(path: Any) -> str:
    """The whole path of a file or a folder. `hf://owner/name` stays as it is."""
    path = os.fspath(path)
    return path if "://" in path else os.path.abspath(path)


def find_digest(task: keras.Model) -> str:
    """A short text that differs if one of the weights of a task does."""
    digest = hashlib.blake2b(digest_size=6)
    for weight in task.weights:
        array = ops.convert_to_numpy(ops.cast(weight, weight.dtype))
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def check_inputs(student: Any, teacher: Any) -> None:
    """Raises a ValueError if a teacher cannot read the rows of a student."""
    names = f"{with_article(teacher, 'A')} as teacher", f"the student, {with_article(student)},"
    missing = sorted(set(teacher.input) - set(student.input))
    if missing:
        raise ValueError(
            f"{names[0]} reads {', '.join(missing)}, which {names[1]} does not have. Build the "
            "student on an encoder with the inputs of the teacher, such as "
            "teacher.keep_layers([0, 2, 4])."
        )
    both = [_read_vocabulary(task) for task in (teacher, student)]
    sizes = [getattr(task.backbone, "vocabulary_size", None) for task in (teacher, student)]
    # A file may be opened, whose tokenizer has no vocabulary yet.
    differ = sizes[0] != sizes[1] if None in both else both[0] != both[1]
    if differ:
        raise ValueError(
            f"{names[0]} has a vocabulary of {sizes[0]} tokens, and {names[1]} another of "
            f"{sizes[1]}, so the same ids are other words. Build the student with the tokenizer of "
            "the teacher, or train the teacher on the checkpoint of the student."
        )
    length = getattr(student.preprocessor, "sequence_length", None)
    most = getattr(teacher.backbone, "max_sequence_length", None)
    if length is not None and most is not None and length > most:
        raise ValueError(
            f"{names[0]} has {most} positions, and the rows of {names[1]} have up to {length} "
            f"tokens. Set student.preprocessor.sequence_length = {most}."
        )


def check_outputs(student: Any, teacher: Any) -> None:
    """Raises a ValueError if the outputs of a teacher are no targets of a student."""
    both = f"The student is {with_article(student)}, and the teacher {with_article(teacher)}"
    if student.HEAD is not teacher.HEAD:
        raise ValueError(
            f"{both}, so their outputs cannot be compared. Take a teacher of the student's class, "
            "or learn from its hidden states alone: Distillation(teacher, alpha=0, "
            "label_weight=1, terms=[HiddenStates()])."
        )
    names = [getattr(task, "label_names", None) for task in (student, teacher)]
    if names[0] != names[1]:
        raise ValueError(
            f"The student has the labels {names[0]}, and the teacher {names[1]}. Build the student "
            f"with label_names={names[1]}, in this order."
        )
    if isinstance(student.output, dict) or isinstance(teacher.output, dict):
        return
    shapes = [task.output.shape[-1] for task in (student, teacher)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{both}, and their outputs have the widths {shapes[0]} and {shapes[1]}. Give the "
            "student the width of the teacher, or learn from its hidden states alone, which are "
            "projected: Distillation(teacher, alpha=0, label_weight=1, terms=[HiddenStates()])."
        )
    said = [task.find_output_form().name_outputs() for task in (student, teacher)]
    if said[0] != said[1]:
        raise ValueError(
            f"The student predicts {said[0]}, and the teacher {said[1]}. Build both with the same "
            "problem_type and activation."
        )


def _read_vocabulary(task: Any) -> list[str] | None:
    """The tokens of a task, or None if they are not known."""
    tokenizer: Any = getattr(task.preprocessor, "tokenizer", None)
    try:
        return list(tokenizer.get_vocabulary())
    except (AttributeError, ValueError):
        return None
