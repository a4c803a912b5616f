"""Deals rows into folds, and trains a task for each fold on the rows of the others."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.data.arrays import as_array, check_same_rows, name_columns, take_rows
from keras_bert_suite.data.readers.records import is_missing
from keras_bert_suite.heads.base.input_checks import check_in_memory
from keras_bert_suite.heads.base.labels import NamedLabels


def train_folds(
    make_task: Callable[[], Any],
    x: Inputs,
    y: Labels,
    folds: int,
    *,
    seed: int,
    batch_size: int | None,
    groups: Any = None,
    **fit: Any,
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yields for each fold a task that was trained on the others, and int (K,), its own rows.

    Args: as for `fit_folds`.
    """
    check_in_memory(x)
    check_integer("folds", folds, at_least=2)
    check_integer("seed", seed)
    if isinstance(make_task, keras.Model) or not callable(make_task):
        raise ValueError(
            "make_task must be a function that returns a new compiled task at each call, got "
            f"{with_article(make_task)}. Write the lines that make the task into a function, and "
            "pass the function."
        )
    weights = fit.pop("sample_weight", None)
    check_same_rows(x, y, weights)
    made = [_make(make_task)]  # Its labels say whether they are classes.
    fold_of = deal_into_folds(x, y, folds, seed, groups, holds_classes(made[0]))
    for fold in range(folds):
        held_out, kept = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        task = made[0] if fold == 0 else _make(make_task)
        if fold and any(task is other for other in made):
            raise ValueError(
                "make_task has returned one task twice, which would have seen the rows that it is "
                "to answer. Make a new task in each call."
            )
        made.append(task)
        if weights is not None:
            fit["sample_weight"] = take_rows(weights, kept)
        task.fit(take_rows(x, kept), take_rows(y, kept), batch_size, **fit)
        yield task, held_out


def _make(make_task):
    """The task that `make_task` returns."""
    task = make_task()
    if not hasattr(task, "fit"):
        raise ValueError(
            f"make_task must return a new compiled task at each call, got {with_article(task)}. "
            "End the function by `return task`."
        )
    return task


def holds_classes(task: Any) -> bool | None:
    """Whether the labels of a task's rows are classes; None for a task without named labels."""
    labels = getattr(getattr(task, "data", None), "labels", None)
    return labels.output_kind == "classes" if isinstance(labels, NamedLabels) else None


def deal_into_folds(
    x: Inputs,
    y: Labels,
    folds: int,
    seed: int,
    groups: Any = None,
    are_classes: bool | None = None,
) -> np.ndarray:
    """int64 (N,), the fold of each row.

    Rows with the same label are dealt out one by one, so two folds differ by at most one row of
    each label, and by one row in all. Numbers are dealt in their order. Groups are dealt whole, the
    largest first, each to the fold that leaves the labels most even.

    Args:
        x, y: as for `fit`, in memory.
        folds: int.
        seed: int, decides which rows of a label are in which fold.
        groups: column (N,), rows with the same value are in one fold; or None.
        are_classes: bool, whether labels with one value for each row are classes; None takes all
            but floats for classes.

    Raises:
        ValueError: for fewer rows or groups than folds, a class with fewer rows than folds, a class
            in one fold alone, a row without a group, or other labels than rows.
    """
    check_same_rows(x, y)
    number = _count_rows(x)
    if number < folds:
        raise ValueError(f"folds={folds} needs at least as many rows, got {number}.")
    order = np.random.default_rng(seed).permutation(number)
    names, labels = _read_labels(y, number, are_classes)
    if names is not None:
        _check_classes(names, labels, folds)
    if groups is not None:
        fold_of = _deal_groups(_read_groups(groups, number, folds), labels, order, folds)
        if names is not None:
            _check_spread(names, labels, fold_of)
        return fold_of
    order = order[np.argsort(labels[order], kind="stable")]
    fold_of = np.empty(number, "int64")
    fold_of[order] = np.arange(number) % folds
    return fold_of


def _count_rows(x):
    while isinstance(x := name_columns(x), (dict, tuple)):
        x = next(iter(x.values() if isinstance(x, dict) else x))
    return len(x)


def _read_labels(y, number, are_classes):
    """(names of classes or None, array (N,) by which rows are ordered)."""
    y = name_columns(y)
    nothing = np.zeros(number, "int64")
    if isinstance(y, (dict, tuple)) and not (isinstance(y, tuple) and all(map(np.isscalar, y))):
        return None, nothing
    if are_classes and getattr(y, "ndim", 1) == 2:  # One-hot or soft labels.
        y = as_array(y).argmax(axis=1)
    if y is None or not all(map(np.isscalar, y)):
        return None, nothing
    if are_classes is None:
        are_classes = not all(isinstance(label, (float, np.floating)) for label in y)
    if not are_classes:
        return None, as_array(list(y)).astype("float64")
    return np.unique(list(map(str, y)), return_inverse=True)


def _check_classes(names, labels, folds):
    counts = np.bincount(labels)
    place = int(counts.argmin())
    rows = int(counts[place])
    if rows < folds:
        remedy = f"Pass folds={rows}" if rows > 1 else "Find more of its rows"
        raise ValueError(
            f"The label {str(names[place])!r} has {rows} row{'s' * (rows != 1)}, and each of "
            f"folds={folds} needs one. {remedy}, join the label with another, or leave its rows "
            "out."
        )


def _read_groups(groups, number, folds):
    """int (N,), the number of the group of each row."""
    if isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise ValueError(
            f"groups must be a column with a value for each row, got {groups!r:.80}. Pass the "
            "column itself, and not its name: groups=table['author']."
        )
    groups = _list_groups(groups)
    if len(groups) != number:
        raise ValueError(
            f"groups must have a value for each row, got {len(groups)} for {number} rows."
        )
    for row, name in enumerate(groups):
        if not isinstance(name, Hashable):
            raise ValueError(
                "The group of a row must be one value, such as a str or a number, got "
                f"{name!r:.80} at row {row}. Join several values to one."
            )
        if is_missing(name):
            raise ValueError(
                f"Row {row} has no group, got {name!r}. Rows without one may belong together, and "
                "would be in several folds. Name the group of each row, or leave these rows out."
            )
    numbers = {name: place for place, name in enumerate(dict.fromkeys(groups))}
    if len(numbers) < folds:
        raise ValueError(
            f"folds={folds} needs at least as many groups, got {len(numbers)}. Pass fewer folds."
        )
    return np.array([numbers[name] for name in groups])


def _list_groups(groups):
    """A list of values, as NumPy reads them: numbers of PyTorch are one group if they are equal."""
    try:
        column = as_array(groups)
    except ValueError:  # Rows of lists, which are of several lengths.
        return list(groups)
    return list(column if column.ndim == 1 else groups)


def _deal_groups(groups, labels, order, folds):
    """int64 (N,), folds of whole groups, as even in rows of each label as a greedy choice is."""
    is_class = labels.dtype.kind == "i"
    kinds = labels if is_class else np.zeros(len(labels), "int64")
    counts = np.zeros((groups.max() + 1, kinds.max() + 1))
    np.add.at(counts, (groups, kinds), 1)
    shares = counts / counts.sum(axis=0)
    # Of equal groups, the first in the random order.
    seen = list(dict.fromkeys(groups[order].tolist()))
    sizes = counts.sum(axis=1)
    of_folds, rows = np.zeros((folds, shares.shape[1])), np.zeros(folds)
    fold_of_group = np.empty(len(counts), "int64")
    for group in sorted(seen, key=lambda group: -sizes[group]):
        # Adding a share s to a fold that has f raises the sum of squares by 2 s f + s^2.
        costs = of_folds @ shares[group]
        fold = min(range(folds), key=lambda fold: (costs[fold], rows[fold]))  # noqa: B023
        fold_of_group[group] = fold
        of_folds[fold] += shares[group]
        rows[fold] += sizes[group]
    return fold_of_group[groups]


def _check_spread(names, labels, fold_of):
    for place, name in enumerate(names):
        own = np.unique(fold_of[labels == place])
        if len(own) < 2:
            raise ValueError(
                f"All {np.sum(labels == place)} rows of the label {str(name)!r} are in groups of "
                f"fold {own[0]}, so the task for this fold would not learn it. Pass another seed, "
                "or split its groups."
            )
