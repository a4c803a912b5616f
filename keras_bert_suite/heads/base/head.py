"""The facts of a head, said once: how its parts are made, how it is trained, how it is served."""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: The heads that are known: the class of the task -> `Head`.
HEADS: dict[str, "Head"] = {}

#: The peak for a head with `head_layers`, see benchmarks/results/head_layers.md.
HEAD_LAYERS_RATE = 1e-3


@dataclasses.dataclass(frozen=True)
class Head:
    """A head of an encoder. Its task has it as the attribute `HEAD`, and so have its subclasses.

    The constructor of the task and `open_runtime` make the parts of the task by `make_parts`. An
    export says in `task.json` what they are made of. Python and the command line train the task
    with the same values. A head of your own is known as soon as it is made.

    Args:
        task: str, the name of the class of the task.
        make_parts: function(said, packer, encoder) -> (data, answers). `said` is a dict of the
            arguments of the task that the parts are made of; values that are None may be missing.
            In an export it has also the values of `describe`, and the outputs come from
            `answers.serve`. `packer` is the preprocessor, and `encoder` the `EncoderInputs`.
        settings: tuple of str, the arguments of the task for `make_parts`, and others that a client
            of an export must know. `label_names` are always there, as `labels`, and `input_names`.
        describe: function(task) -> dict of JSON values that `make_parts` reads beside arguments.
        served: the `ServedTask` of its SavedModel: a class, or "module:class" to import it late.
        columns: what makes the `AnswerColumns` of a model with this head, as `served`; None for a
            head without answers for a table.
        learning_rate: float, the peak of the learning rate.
        head_learning_rate: float, the peak for the weights outside of the backbone; None for
            `learning_rate`.
        warmup_ratio: float, the share of the steps in which the learning rate rises.
        rate_multipliers: tuple of pairs (pattern, factor), as for `AdamW`.
        batch_size: int, the rows of a training step.
        sequence_length: int, the most tokens of a row that the command line trains on.
        takes_frames: bool, whether the backbone may read frames instead of tokens.
        takes_condition: bool, whether the norms of the backbone may depend on a condition.
    """

    task: str
    make_parts: Callable[[dict[str, Any], Any, Any], tuple[Any, Any]]
    settings: tuple[str, ...] = ()
    describe: Callable[[Any], dict[str, Any]] = lambda task: {}
    served: str | type = "keras_bert_suite.heads.base.served:ServedTask"
    columns: str | Callable[..., Any] | None = None
    learning_rate: float = 5e-5
    head_learning_rate: float | None = None
    warmup_ratio: float = 0.1
    rate_multipliers: tuple[tuple[str, float], ...] = ()
    batch_size: int = 32
    sequence_length: int = 128
    takes_frames: bool = False
    takes_condition: bool = False

    def __post_init__(self) -> None:
        HEADS[self.task] = self

    def find_served(self) -> type:
        """The class of `ServedTask`."""
        return _find(self.served)

    def find_columns(self) -> Callable[..., Any] | None:
        """function(model, arguments of its `predict`) -> `AnswerColumns`, or None."""
        return _find(self.columns)


def _find(value):
    """What "module:name" stands for. Another value stands for itself."""
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)


def read_heads() -> dict[str, Head]:
    """`HEADS` with all heads of this package. Their records need no import of Keras."""
    _import_heads()
    return HEADS


@functools.cache
def _import_heads() -> None:
    folder = Path(__file__).parents[1]
    package = __name__.removesuffix(".base.head")
    for module in pkgutil.iter_modules([str(folder)]):
        if module.ispkg:
            importlib.import_module(f"{package}.{module.name}")


def make_no_parts(said, packer, encoder):
    """For a task without a `HEAD`, which makes its parts in its constructor alone."""
    raise ValueError(
        "The class of this task has no HEAD, so its parts cannot be made of a file. Give it one, "
        "see keras_bert_suite.heads.base.head."
    )
