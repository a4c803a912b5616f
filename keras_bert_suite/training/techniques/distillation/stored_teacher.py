"""A teacher whose outputs were computed before, in a folder."""

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_bert_suite.argument_checks import with_article

#: The files of a folder of outputs.
FACTS_FILE, ARRAY_FILE = "teacher_outputs.json", "teacher_outputs.npy"

#: The array of a batch that holds the outputs, (B, teachers, ...).
TEACHER_OUTPUTS = "teacher_outputs"


@dataclasses.dataclass(frozen=True)
class StoredTeacher:
    """The facts of a folder of outputs.

    Attributes:
        path: str, the folder.
        rows: str, the number of the rows and their digest.
        teachers: list of dicts, of each teacher its digest and what `describe_outputs` says.
    """

    path: str
    rows: str
    teachers: list[dict[str, Any]]

    @classmethod
    def is_in(cls, path: Any) -> bool:
        """Whether a folder has outputs, and no task."""
        return os.path.isfile(os.path.join(path, FACTS_FILE))

    @classmethod
    def open(cls, path: Any) -> "StoredTeacher":
        """Reads the facts of a folder."""
        if not cls.is_in(path):
            raise ValueError(
                f"{path} has no {FACTS_FILE}. Write the outputs of a teacher there: "
                "write_teacher_outputs(teacher, texts, path)."
            )
        facts = json.loads((Path(path) / FACTS_FILE).read_text("utf-8"))
        return cls(os.path.abspath(path), **facts)

    @property
    def digest(self) -> str:
        return ", ".join(teacher["digest"] for teacher in self.teachers)

    def check(self, student: Any) -> None:
        """Raises a ValueError if the outputs are no targets of a student."""
        for name, value in describe_outputs(student):
            for teacher in self.teachers:
                if teacher[name] != value:
                    raise ValueError(
                        f"The outputs in {self.path} are of a teacher with the {name} "
                        f"{teacher[name]}, and the student, {with_article(student)}, has {value}. "
                        f"Build the student with the {name} of the teacher."
                    )


def describe_outputs(task: Any) -> Iterator[tuple[str, Any]]:
    """Facts that tell the outputs of two tasks apart, as (name, value).

    A later fact is asked for only where the earlier ones are equal: other tasks may not have it.
    """
    yield "task", task.HEAD.task
    yield "label_names", getattr(task, "label_names", None)
    yield "width", task.output.shape[-1]
    yield "predictions", task.find_output_form().name_outputs()
