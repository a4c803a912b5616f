"""What the tests know of a kind of task, a value of --task."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Learning:
    """How the files of a kind are written, their rows, the flags of a training, and what it learns.

    `write` gets a path, one of `rows` and a seed. `check` gets the scores, what `evaluate` prints,
    the lines of `predict` as a table, its answers in JSON, and the path of the rows.
    """

    write: Callable
    ending: str
    rows: tuple
    flags: str
    check: Callable
    evaluate: str = ""


@dataclasses.dataclass(frozen=True)
class KindCase:
    """A kind of task. The file of its name in `cli/kinds/` has its case.

    The files that flags name are `FILES` of `test_every_flag.py`.

    Attributes:
        model: (the class of a model of this kind, its arguments).
        trained: the flags of `finetune` for each of its heads.
        labelled: the flags of `evaluate` for labelled rows.
        asked: the flags of `predict`.
        flags: rows of `FINETUNE` in `flag_table.py`, for the flags that it has alone.
        batches: the argument that --batch_size sets in `evaluate` and `predict`.
        export: what `task.json` says of a model.
        outputs: dict of the outputs of a SavedModel for two rows.
        answers: the two answers of `predict` in JSON.
        table: the lines of `predict` as a table; None if there is no such table.
        rows: (name, text) of the file of these rows; None for single texts.
        learning: the training of `test_kinds.py`; None if a file of the kind has one.
    """

    model: tuple[str, dict[str, Any]]
    trained: tuple[str, ...]
    export: dict[str, Any]
    outputs: dict[str, Any]
    answers: list[dict]
    table: list[str] | None
    rows: tuple[str, str] | None = None
    labelled: str = ""
    asked: str = ""
    flags: dict[str, Any] = dataclasses.field(default_factory=dict)
    batches: str = "batch_rows.batch_size"
    learning: Learning | None = None


#: Two labels, in the arguments of a task and in `task.json`.
LABELS = {"label_names": ["no", "yes"]}
EXPORTED = {"labels": ["no", "yes"]}
