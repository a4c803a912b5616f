"""What smaller models cost and answer, beside the model that they were made of."""

import dataclasses
import re
import statistics
import time
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.heads.base.input_checks import check_in_memory
from keras_bert_suite.heads.base.task import Task


@dataclasses.dataclass(frozen=True)
class TaskSize:
    """What a task costs, and how far its outputs are from those of the first task.

    Attributes:
        name: str.
        parameters: int, numbers in the weights.
        megabytes: float, of the weights in memory, in millions of bytes.
        milliseconds: float, the median wall time of packing all texts and computing the outputs of
            the model, by the number of batches.
        greatest_change, mean_change: float, the absolute difference of an output of the model, such
            as a logit, from the output of the first task. None where the outputs have other shapes.
        scores: dict of the numbers that `score` returns, by name; empty without labels.
    """

    name: str
    parameters: int
    megabytes: float
    milliseconds: float
    greatest_change: float | None
    mean_change: float | None
    scores: dict[str, float]


@dataclasses.dataclass(frozen=True)
class SizeComparison:
    """Rows about tasks, the first of which is the one that the others were made of.

    `print` shows a table.

    Attributes:
        sizes: list of `TaskSize`.
    """

    sizes: list[TaskSize]

    def __str__(self) -> str:
        scores = list(self.sizes[0].scores)
        headings = ["", "parameters", "MB", "ms a batch", "greatest change", "mean change", *scores]
        lines = [headings, *([*map(str, _list_cells(size, scores))] for size in self.sizes)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def compare_sizes(
    tasks: Mapping[str, Task],
    x: Inputs,
    y: Labels = None,
    *,
    batch_size: int = 32,
    rounds: int = 5,
) -> SizeComparison:
    """Measures tasks that were made of one another: size, time, change of outputs, score.

    The tasks are timed in turn, so that a busy machine disturbs each alike. A first round is not
    counted.

    ```python
    small = classifier.prune_heads(texts, labels, share=0.3)
    print(kbs.compare_sizes({"whole": classifier, "pruned": small}, dev_texts, dev_labels))
    #          parameters     MB  ms a batch  greatest change  mean change  accuracy  ...
    # whole    22,713,986  90.86      310.20            0.000        0.000     0.912
    # pruned   20,649,602  82.60      287.54            0.811        0.214     0.897
    ```

    Args:
        tasks: dict of a name -> task. The first is the one to which outputs are compared.
        x: rows in memory, as for `predict`.
        y: their labels, for the scores; or None.
        batch_size: int.
        rounds: int, how often each task is timed.

    Returns:
        `SizeComparison`.

    Raises:
        ValueError: if there are no tasks, or one of them is no task; or as `predict` and `score`.
    """
    check_in_memory(x)
    check_integer("rounds", rounds, at_least=1)
    if not isinstance(tasks, Mapping) or not tasks:
        raise ValueError(f"tasks must be a dict of a name and a task each, got {tasks!r:.60}.")
    for task in tasks.values():
        if not isinstance(task, Task):
            raise ValueError(f"tasks must be tasks of this package, got {with_article(task)}.")
        if y is not None and not hasattr(task, "score"):
            raise ValueError(f"{with_article(task, 'A')} has no scores of labels. Leave out `y`.")
    times: dict[str, list[float]] = {name: [] for name in tasks}
    outputs = {name: _list_outputs(task, x, batch_size) for name, task in tasks.items()}
    num_batches = max(1, -(-len(tasks[next(iter(tasks))].data.read(x)) // batch_size))
    for _ in range(rounds):
        for name, task in tasks.items():
            begin = time.perf_counter()
            _list_outputs(task, x, batch_size)
            times[name].append(1000 * (time.perf_counter() - begin) / num_batches)
    first = next(iter(outputs.values()))
    sizes = []
    for name, task in tasks.items():
        greatest, mean = _find_changes(first, outputs[name])
        scores = {} if y is None else _read_scores(task, x, y, batch_size)
        milliseconds = statistics.median(times[name])
        sizes.append(TaskSize(name, *count_weights(task), milliseconds, greatest, mean, scores))
    return SizeComparison(sizes)


def count_weights(task: keras.Model) -> tuple[int, float]:
    """(the numbers in the weights of a model, the millions of bytes that they take)."""
    counts = [(int(np.prod(w.shape)), _count_bytes(w.dtype)) for w in task.weights]
    return sum(n for n, _ in counts), sum(n * size for n, size in counts) / 1e6


def _count_bytes(dtype: str) -> int:
    """The bytes of a number of a type of Keras, such as 2 of bfloat16."""
    bits = re.search(r"\d+", dtype)  # The first number of float8_e4m3fn.
    return int(bits[0]) // 8 if bits else 1


def _list_outputs(task: Any, x: Inputs, batch_size: int) -> list[np.ndarray]:
    """The outputs of the model for all rows, each array as a vector."""
    found = task.predict_with(lambda outputs, rows: outputs, x, batch_size, verbose=0)
    return [np.asarray(leaf, "float64").ravel() for leaf in keras.tree.flatten(found)]


def _find_changes(
    first: list[np.ndarray], other: list[np.ndarray]
) -> tuple[float | None, float | None]:
    if [a.shape for a in first] != [a.shape for a in other]:
        return None, None
    change = np.concatenate([np.abs(a - b) for a, b in zip(first, other, strict=True)] or [[0.0]])
    return float(change.max(initial=0.0)), float(change.mean()) if change.size else 0.0


def _read_scores(task: Any, x: Inputs, y: Labels, batch_size: int) -> dict[str, float]:
    scores = task.score(x, y, batch_size)
    return {n: float(v) for n, v in scores.items() if isinstance(v, (int, float, np.number))}


def _list_cells(size: TaskSize, scores: list[str]) -> list[str]:
    changes = (size.greatest_change, size.mean_change)
    return [
        size.name,
        f"{size.parameters:,}",
        f"{size.megabytes:.2f}",
        f"{size.milliseconds:.2f}",
        *("-" if change is None else f"{change:.3g}" for change in changes),
        *(f"{size.scores[name]:.4f}" if name in size.scores else "-" for name in scores),
    ]
