"""Finds the rows that a task answers wrongly, and labels that look wrong."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.data.arrays import take_rows
from keras_bert_suite.heads.base.folds import train_folds
from keras_bert_suite.heads.base.wrong_answers import WrongAnswer
from keras_bert_suite.tokenizers.joining import join_words
from keras_bert_suite.tokenizers.text_inputs import decode_text


def inspect_rows(
    task: Any, x: Inputs, y: Labels, batch_size: int | None = None
) -> list[WrongAnswer]:
    """Finds the rows whose label is not the answer, the highest loss first.

    Look at them before you change a model: some are hard, and some labels are wrong. A tagger has
    an entry for each wrong word, an `AttributeClassifier` one for each wrong attribute of a row. A
    regression has an entry for each row.

    `label_looks_wrong` says something only about rows that the task was not trained on; see
    `inspect_by_folds` for the others.

    ```python
    wrong = classifier.inspect(dev_texts, dev_labels)
    pandas.DataFrame(wrong)
    collections.Counter((w.label, w.predicted) for w in wrong).most_common()
    ```

    Args:
        x, y: as for `fit`, in memory.
        batch_size: int, 32 by default.

    Returns:
        list of `WrongAnswer`.

    Raises:
        ValueError: as `score`.
    """
    return complete_wrong(task, x, task.score_with(task.answers.inspect, x, y, batch_size))


def complete_wrong(task: Any, x: Inputs, wrong: list[WrongAnswer]) -> list[WrongAnswer]:
    """Gives the wrong answers of a task their texts, the highest loss first."""
    rows = task.data.read(x)
    if not rows.is_packed and task.data.encoder.frame_dim is None:
        wrong = [
            dataclasses.replace(w, texts=tuple(_read_text(column[w.row]) for column in rows.inputs))
            for w in wrong
        ]
    return sort_by_loss(wrong)


def inspect_by_folds(
    make_task: Callable[[], Any],
    x: Inputs,
    y: Labels,
    folds: int = 5,
    *,
    seed: int = 0,
    batch_size: int | None = None,
    groups: Any = None,
    **fit: Any,
) -> list[WrongAnswer]:
    """Finds rows to train on whose labels look wrong, by tasks that were not trained on them.

    The rows are dealt into folds, each with the same mix of labels. For each fold a new task is
    trained on the other folds, and answers its rows. So it takes `folds` - 1 trainings on all rows.
    `fit_folds` finds the same rows, and keeps the tasks.

    ```python
    def make_task():
        return kbs.TextClassifier.from_preset("path/to/checkpoint", num_classes=2)

    wrong = kbs.inspect_by_folds(make_task, texts, labels, epochs=3)
    suspects = [w for w in wrong if w.label_looks_wrong]
    ```

    Args:
        make_task: function without arguments that returns a new compiled task which has `inspect`.
        x, y: as for `fit`, in memory.
        folds: int, at least 2.
        seed: int, decides which rows are in which fold.
        batch_size: int, 32 by default, for training and for answers.
        groups: column of N values. Rows with the same value are in one fold; see `fit_folds`.
        **fit: further arguments of `fit`, such as `epochs`.

    Returns:
        list of `WrongAnswer`, the highest loss first; see `inspect_rows`. Each fold has its
        thresholds for `label_looks_wrong`.

    Raises:
        ValueError: as `fit`; or as `fit_folds`.

    Source: Northcutt et al., 2021 (https://arxiv.org/abs/1911.00068), section 3.
    """
    wrong = []
    dealt = train_folds(
        make_task, x, y, folds, seed=seed, batch_size=batch_size, groups=groups, **fit
    )
    for task, held_out in dealt:
        found = task.inspect(take_rows(x, held_out), take_rows(y, held_out), batch_size)
        wrong += number_rows(found, held_out)
    return sort_by_loss(wrong)


def number_rows(wrong: list[WrongAnswer], rows: np.ndarray) -> list[WrongAnswer]:
    """Wrong answers of some rows, int (K,), with the numbers that these have among all rows."""
    return [dataclasses.replace(w, row=int(rows[w.row])) for w in wrong]


def sort_by_loss(wrong: list[WrongAnswer]) -> list[WrongAnswer]:
    """Wrong answers, the highest loss first."""
    return sorted(wrong, key=lambda answer: -answer.loss)


def _read_text(text):
    """str of a text, or of a list of words."""
    if isinstance(text, (str, bytes)):
        return decode_text(text)
    words = [decode_text(word) for word in text]
    # A row of characters is a text without spaces.
    return ("".join if all(len(word) <= 1 for word in words) else join_words)(words)
