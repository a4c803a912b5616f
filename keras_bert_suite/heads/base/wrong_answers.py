"""The rows that a model answers wrongly, and how sure it is."""

import dataclasses
from typing import Any

import numpy as np

from keras_bert_suite.heads.base.label_issues import find_label_issues


@dataclasses.dataclass(frozen=True)
class WrongAnswer:
    """A row, or a word of a row, whose label is not the answer of the model.

    Attributes:
        row: int, counted from 0.
        texts: tuple of str, the texts of the row. It is empty for packed arrays.
        label, predicted: str. For sets of labels they are lists of str, and for numbers a float or
            a list of floats.
        probability, label_probability: float, of `predicted` and of `label`, as the model sees
            them; None for numbers.
        loss: float, -log(label_probability); for numbers the mean squared error.
        label_looks_wrong: bool, see `find_label_issues`. It says something only about rows that the
            model was not trained on.
        word, place: str and int, the word and its place in the row, counted from 0; None if the row
            as a whole has the label.
    """

    row: int
    texts: tuple[str, ...]
    label: Any
    predicted: Any
    probability: float | None
    label_probability: float | None
    loss: float
    label_looks_wrong: bool = False
    word: str | None = None
    place: int | None = None


def find_wrong_classes(probabilities, label_ids, names, answer_ids):
    """The entries whose label is not the answer.

    Args:
        probabilities: float (N, C).
        label_ids: int (N,).
        names: list of C str.
        answer_ids: int (N,).

    Returns:
        list of `WrongAnswer` without texts, whose `row` is the entry, in the order of the entries.
    """
    probabilities = np.asarray(probabilities, "float64")
    looks_wrong = find_label_issues(label_ids, probabilities)
    columns = np.arange(len(label_ids))
    return _list_wrong(
        np.flatnonzero(answer_ids != label_ids),
        [names[i] for i in label_ids],
        [names[i] for i in answer_ids],
        np.log(_at_least(probabilities[columns, answer_ids])),
        np.log(_at_least(probabilities[columns, label_ids])),
        looks_wrong,
    )


def find_wrong_sets(probabilities, has_label, is_answer, names):
    """The rows whose set of labels is not the answer. The probability of a set is a product.

    Args:
        probabilities: float (N, C), of each label.
        has_label, is_answer: bool (N, C).
        names: list of C str.

    Returns:
        list of `WrongAnswer` without texts.
    """
    probabilities = np.asarray(probabilities, "float64")
    both = _at_least(np.stack([1 - probabilities, probabilities]))
    logs = [np.where(part, *np.log(both)[::-1]).sum(axis=1) for part in (is_answer, has_label)]
    issues = [
        find_label_issues(has_label[:, c].astype(int), both[:, :, c].T) for c in range(len(names))
    ]
    sets = (
        [[names[c] for c in np.flatnonzero(row)] for row in part] for part in (has_label, is_answer)
    )
    wrong = np.flatnonzero((is_answer != has_label).any(axis=1))
    return _list_wrong(wrong, *sets, *logs, np.any(issues, axis=0))


def _list_wrong(entries, labels, answers, logs, label_logs, looks_wrong):
    return [
        WrongAnswer(
            int(i),
            (),
            labels[i],
            answers[i],
            float(np.exp(logs[i])),
            float(np.exp(label_logs[i])),
            float(-label_logs[i]),
            bool(looks_wrong[i]),
        )
        for i in entries
    ]


def _at_least(probabilities):
    """Probabilities whose logarithm is finite."""
    return np.maximum(probabilities, np.finfo("float64").tiny)
