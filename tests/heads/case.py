"""What the tests know of a head."""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Changed:
    """Arguments that are not the defaults, and what they change.

    Attributes:
        arguments: dict of arguments of the task.
        observe: function(task) to a structure of arrays, numbers and strings, which depends on each
            of the arguments.
        backbone: dict of further arguments of the backbone.
    """

    arguments: dict[str, Any]
    observe: Callable[[Any], Any]
    backbone: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Case:
    """A head with rows for it. The tests of small tasks, files, runtimes and exports iterate.

    Attributes:
        cls: class of the task.
        rows: what `fit` takes: a list of texts, or a tuple of columns.
        labels: what `fit` takes for the rows, or None.
        arguments: dict of arguments of the task, beside the backbone and the preprocessor.
        encoder: function(backbone, packer) to the backbone that the task wants.
        prepare: function(packer) to the preprocessor that the task wants.
        pack: function(task, rows, labels) to the columns of a head whose rows are always packed
            before `fit`, or None.
        asked: function(task, rows) to the rows that `predict` takes.
        decode: function(the answers of `predict`) to a structure of numbers.
        compiled: dict of arguments of `compile`, beside the optimizer.
        changed: tuple of `Changed`, which together have every argument of the class.
        names: the names that the task gives the columns of its rows.
        num_axes: how many axes packed arrays may have.
        wrong_labels: function(wrong) to labels of the rows in which `wrong` stands for the id of a
            label; None where labels are no ids.
        answering: names of methods with the arguments (x, batch_size, steps).
        scoring: names of methods with the arguments (x, y, batch_size).
        metrics: (function to arguments of `compile`, dict of names of `score` to names in logs), or
            None. A metric has variables, and processes that are to share a training are joined
            before the first variable is made.
        refused_metric: (a metric that `compile` refuses, a pattern of the error), or None.
        served: (hostile rows, function(task, rows) to what a runtime answers), or None if there is
            no runtime for the head.
        column: the column of `BatchPredictor` that has what `predict` or `predict_labels` says, or
            None if the head has no answers for a table.
        initializers: how the matrices of the head begin, as `name_initializers` tells of a backbone
            with initializer_range=0.5. The default is that of Google's run_classifier.py and
            run_squad.py, which name 0.02, whatever the configuration says.
        row: its name in docs/techniques.md; None if this is that of the case.
    """

    cls: type
    rows: Any
    labels: Any
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)
    encoder: Callable = lambda backbone, packer: backbone
    prepare: Callable = lambda packer: packer
    pack: Callable | None = None
    asked: Callable = lambda task, rows: rows
    decode: Callable = lambda answers: answers
    compiled: dict[str, Any] = dataclasses.field(default_factory=dict)
    changed: tuple[Changed, ...] = ()
    names: tuple[str, ...] = ("text",)
    num_axes: tuple[int, ...] = (2,)
    wrong_labels: Callable | None = None
    answering: tuple[str, ...] = ()
    scoring: tuple[str, ...] = ()
    metrics: tuple[Callable, dict] | None = None
    refused_metric: tuple[str, str] | None = None
    served: tuple[Any, Callable] | None = None
    column: str | None = None
    initializers: frozenset[str] = frozenset({"TruncatedNormal 0.02"})
    row: str | None = None


def pack_rows(task, rows, labels):
    """Columns (x, y) or (x, y, sample_weight) of all rows, as `fit` packs them.

    The texts of a row of an embedder stand one after the other in a batch. Rows that were packed
    before have an axis for them, (B, S, L).
    """
    windows = task.data.window(task.data.read(rows, labels, labelled=True))
    x, *others = task.data.pack(windows.take(slice(None), 0), labelled=True)
    if x["token_ids"].shape[0] != len(windows):
        x = {name: a.reshape(len(windows), -1, a.shape[-1]) for name, a in x.items()}
    return x, *(column for column in others if column is not None)
