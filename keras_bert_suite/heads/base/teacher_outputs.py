"""The outputs of teachers, computed once, and read from disk while a student learns."""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Inputs, PathLike
from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.runs.training_facts import describe_rows
from keras_bert_suite.training.techniques.distillation.stored_teacher import (
    ARRAY_FILE,
    FACTS_FILE,
    TEACHER_OUTPUTS,
    StoredTeacher,
    describe_outputs,
)
from keras_bert_suite.training.techniques.distillation.teachers import find_digest, list_teachers


def write_teacher_outputs(
    teacher: Any, x: Inputs, path: PathLike, batch_size: int = 32, overwrite: bool = False
) -> None:
    """Computes the outputs of a teacher for rows once, and writes them to a folder.

    A student then learns without the teacher in memory, and a step takes a plain step's time:

    ```python
    kbs.write_teacher_outputs(teacher, texts, "outputs")
    student.compile(technique=kbs.Distillation("outputs"))
    student.fit(kbs.add_teacher_outputs("outputs", student, texts), labels, epochs=10)
    ```

    The folder has the outputs by row, float32, and the digests of the rows and of the teacher.

    Args:
        teacher: a task, or a list of several, whose outputs all are written.
        x: texts, as for `fit`, or packed arrays by name.
        path: the folder, which is made.
        batch_size: int, the rows of a pass.
        overwrite: bool, whether to replace a folder at `path`.

    Raises:
        ValueError: if the outputs of a row depend on more than its texts, as with a CRF, whose
            transitions count, too, or with several outputs; or if a row has several texts, which
            a task such as a `TextEmbedder` or a `TextRanker` compares.
        FileExistsError: if there is anything at `path`.
    """
    check_integer("batch_size", batch_size, at_least=1)
    teachers = list_teachers(teacher)
    for task in teachers:
        if not isinstance(task, keras.Model):
            raise ValueError(f"teacher must be a task, or a list of several, got {task!r:.80}.")
    described = [_describe(task) for task in teachers]
    rows = _read_rows(teachers[0], x)
    if not len(rows):
        raise ValueError("The outputs of a teacher need at least one row, got none.")
    facts = {"rows": describe_rows(rows), "teachers": described}
    with atomic_directory(path, overwrite) as directory:
        array: Any = None
        for place, task in enumerate(teachers):
            packed = _pack(task, x)
            for start in range(0, len(rows), batch_size):
                batch = {name: a[start : start + batch_size] for name, a in packed.items()}
                outputs = np.asarray(task.predict_on_batch(batch), "float32")
                if array is None:
                    shape = (len(rows), len(teachers), *outputs.shape[1:])
                    file = directory / ARRAY_FILE
                    array = np.lib.format.open_memmap(file, "w+", "float32", shape)
                array[start : start + len(outputs), place] = outputs
        array.flush()
        (directory / FACTS_FILE).write_text(json.dumps(facts, indent=2), "utf-8")


def add_teacher_outputs(path: PathLike, student: Any, x: Inputs) -> dict[str, np.ndarray]:
    """The packed arrays of rows for the `fit` of a student, with the outputs of the teacher.

    The outputs stay on disk. `fit` reads those of a batch.

    Args:
        path: the folder from `write_teacher_outputs`.
        student: the task that learns.
        x: the rows that were written, in their order.

    Raises:
        ValueError: if these are other rows.
    """
    stored = StoredTeacher.open(path)
    found = describe_rows(_read_rows(student, x))
    if found != stored.rows:
        raise ValueError(
            f"{path} has the outputs of a teacher for {stored.rows}, got {found}. Pass the same "
            "rows in the same order, or write the outputs of these rows."
        )
    packed = _pack(student, x)
    outputs = np.load(Path(path) / ARRAY_FILE, mmap_mode="r")
    return {**packed, TEACHER_OUTPUTS: outputs}


def _read_rows(task: Any, x: Inputs) -> Rows:
    """The inputs of rows as the user passed them."""
    return Rows(task.data.read(x).inputs)


def _pack(task: Any, x: Inputs) -> dict[str, np.ndarray]:
    rows = task.data.read(x)
    if not rows.is_packed and type(task.data).window is not TextData.window:
        raise ValueError(
            f"{with_article(task, 'A')} cuts its rows by its labels, so the outputs of texts have "
            "no row. Let the teacher run beside the student, or pass packed arrays."
        )
    return task.data.pack(rows)[0]


def _describe(task: Any) -> dict[str, Any]:
    if isinstance(task.output, dict) or hasattr(task, "crf"):
        raise ValueError(
            f"The outputs of {with_article(task)} do not say all of its predictions. Let the "
            "teacher run beside the student: Distillation(teacher)."
        )
    axes = {axis for kind in task.data.packed_axes for axis in kind}
    if axes & {"texts", "candidates"}:
        raise ValueError(
            f"{with_article(task, 'A')} compares texts, and is trained on several of them in a "
            "row, which have one place for outputs on disk. Let the teacher run beside the "
            "student: Distillation(teacher)."
        )
    return {"digest": find_digest(task), **dict(describe_outputs(task))}
