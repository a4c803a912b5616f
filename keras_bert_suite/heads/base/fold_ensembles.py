"""Trains an ensemble over folds, and answers each row by the task that has not seen it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.data.arrays import take_rows
from keras_bert_suite.heads.base.ensemble import Ensemble
from keras_bert_suite.heads.base.folds import train_folds
from keras_bert_suite.heads.base.inspection import number_rows, sort_by_loss
from keras_bert_suite.heads.base.wrong_answers import WrongAnswer


@dataclasses.dataclass(frozen=True)
class HeldOutAnswers:
    """What the tasks of `fit_folds` answer for the rows that they were not trained on.

    Attributes:
        fold_of: int64 (N,), the fold of each row. `ensemble.tasks[fold_of[i]]` has not seen row i.
        predictions: the results of `predict` of an ensemble of one task, for all rows in their
            order: an array, a dict of arrays, or a list. They are None for a `TextEmbedder` and a
            `TextRanker`, which are trained on other rows than they answer.
        scores: list of dicts, the results of `score` for the rows of each fold; None without `y`.
        wrong: list of `WrongAnswer`, as `inspect_by_folds` returns it: the rows that are answered
            wrongly, the highest loss first. It is None for a task without `inspect`.
    """

    fold_of: np.ndarray
    predictions: Any
    scores: list[dict[str, Any]] | None
    wrong: list[WrongAnswer] | None


def fit_folds(
    make_task: Callable[[], Any],
    x: Inputs,
    y: Labels,
    folds: int = 5,
    *,
    seed: int = 0,
    batch_size: int | None = None,
    groups: Any = None,
    average: str | None = None,
    **fit: Any,
) -> tuple[Ensemble, HeldOutAnswers]:
    """Trains a task for each fold on the rows of the other folds: k-fold cross-validation.

    All rows are trained on and all are scored, each by a task that has not seen it. The tasks
    together are an ensemble. It takes `folds` - 1 trainings on all rows, and the memory of `folds`
    tasks.

    ```python
    def make_task():
        return kbs.TextClassifier.from_preset("path/to/checkpoint", num_classes=2)

    ensemble, held_out = kbs.fit_folds(make_task, texts, labels, folds=5, epochs=3)
    [scores["accuracy"] for scores in held_out.scores]
    suspects = [w for w in held_out.wrong if w.label_looks_wrong]
    ensemble.predict_labels(test_texts)
    ```

    Args:
        make_task: function without arguments that returns a new compiled task.
        x, y: as for `fit`, in memory.
        folds: int, at least 2. Folds of classes have the same mix of them, see `deal_into_folds`.
        seed: int, decides which rows are in which fold. For the same tasks in each run, seed
            `make_task`, too: `keras.utils.set_random_seed`.
        batch_size: int, 32 by default, for training and for answers.
        groups: column of N values, such as the author or the document of each row. Rows with the
            same value are in one fold, so that no task is scored by what it has seen of a group.
        average: as for `Ensemble`.
        **fit: further arguments of `fit`, such as `epochs`. A `sample_weight` has N rows.

    Returns:
        (`Ensemble` of the tasks, `HeldOutAnswers`).

    Raises:
        ValueError: as `fit` and `Ensemble`; if there are fewer rows or groups than folds; if a
            class has fewer rows than folds, by its name and rows; if the groups put a class into
            one fold alone; if a row has None, NaN or a list as group; if the weights have other
            rows; or if `make_task` returns no task, or one task twice.

    Source: Stone, 1974, "Cross-Validatory Choice and Assessment of Statistical Predictions";
    Wolpert, 1992, "Stacked Generalization", for answers to rows that were held out.
    """
    tasks, rows, found = [], [], []
    dealt = train_folds(
        make_task, x, y, folds, seed=seed, batch_size=batch_size, groups=groups, **fit
    )
    for task, held_out in dealt:
        alone = Ensemble([task], average=average)
        found.append(_answer(alone, take_rows(x, held_out), take_rows(y, held_out), batch_size))
        tasks.append(task)
        rows.append(held_out)
    predictions, scores, wrong = zip(*found, strict=True)
    order = np.argsort(np.concatenate(rows))
    answers = HeldOutAnswers(
        np.repeat(np.arange(folds), list(map(len, rows)))[order],
        None if predictions[0] is None else _in_order(predictions, order),
        None if y is None else list(scores),
        None if wrong[0] is None else _number(wrong, rows),
    )
    return Ensemble(tasks, average=average), answers


def _answer(alone, x, y, batch_size):
    """(predictions, scores, wrong answers) of one task, from outputs that are computed once."""
    rewind, scores, wrong, predictions = alone.record_outputs(), None, None, None
    if alone.answers.are_of_training_rows:
        predictions = alone.predict(x, batch_size, verbose=0)
        rewind()
    if y is not None:
        scores = alone.score(x, y, batch_size)
        rewind()
        if hasattr(alone, "inspect"):
            wrong = alone.inspect(x, y, batch_size)
    return predictions, scores, wrong


def _number(wrong, rows):
    """The wrong answers of all folds, the highest loss first. `rows` has the rows of each fold."""
    pairs = zip(wrong, rows, strict=True)
    return sort_by_loss([answer for own, held in pairs for answer in number_rows(own, held)])


def _in_order(parts, order):
    """Joins the results of `predict` of folds. `order` has the place of each row in them."""
    if any(isinstance(part, list) for part in parts):
        joined = [row for part in parts for row in part]
        return [joined[place] for place in order]
    return keras.tree.map_structure(lambda *arrays: np.concatenate(arrays)[order], *parts)
