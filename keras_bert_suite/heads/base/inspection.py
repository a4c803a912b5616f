"""Finds the rows that a task answers wrongly, and labels that look wrong."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.arrays import check_same_rows, name_columns, take_rows
from keras_bert_suite.heads.base.input_checks import check_in_memory
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
    **fit: Any,
) -> list[WrongAnswer]:
    """Finds rows to train on whose labels look wrong, by tasks that were not trained on them.

    The rows are dealt into folds, each with the same mix of labels. For each fold a new task is
    trained on the other folds, and answers its rows. So it takes `folds` - 1 trainings on all rows.

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
        **fit: further arguments of `fit`, such as `epochs`.

    Returns:
        list of `WrongAnswer`, the highest loss first; see `inspect_rows`. Each fold has its
        thresholds for `label_looks_wrong`.

    Raises:
        ValueError: as `fit`; or if there are fewer rows than folds, or other labels than rows.

    Source: Northcutt et al., 2021 (https://arxiv.org/abs/1911.00068), section 3.
    """
    check_in_memory(x)
    check_integer("folds", folds, at_least=2)
    fold_of = deal_into_folds(x, y, folds, seed)
    wrong = []
    for fold in range(folds):
        held_out, kept = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        task = make_task()
        task.fit(take_rows(x, kept), take_rows(y, kept), batch_size, **fit)
        found = task.inspect(take_rows(x, held_out), take_rows(y, held_out), batch_size)
        wrong += [dataclasses.replace(w, row=int(held_out[w.row])) for w in found]
    return sort_by_loss(wrong)


def deal_into_folds(x: Inputs, y: Labels, folds: int, seed: int) -> np.ndarray:
    """int (N,), the fold of each row. Rows with the same label are dealt out one by one."""
    check_same_rows(x, y)
    column = x
    while isinstance(column := name_columns(column), (dict, tuple)):
        column = next(iter(column.values() if isinstance(column, dict) else column))
    if len(column) < folds:
        raise ValueError(f"folds={folds} needs at least as many rows, got {len(column)}.")
    order = np.random.default_rng(seed).permutation(len(column))
    y = name_columns(y)
    if not isinstance(y, dict) and all(map(np.isscalar, y)):
        labels = np.unique(list(map(str, y)), return_inverse=True)[1]
        order = order[np.argsort(labels[order], kind="stable")]
    fold_of = np.empty(len(order), "int64")
    fold_of[order] = np.arange(len(order)) % folds
    return fold_of


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
