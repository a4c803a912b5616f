"""Counts the confusions of a classifier, and prints tables of scores."""

import numpy as np


def count_confusions(label_ids, predicted_ids, num_classes):
    """int (C, C): the number of rows of class i that were predicted as class j.

    >>> count_confusions([0, 0, 1], [0, 1, 1], 2)
    array([[1, 1],
           [0, 1]])
    """
    pairs = np.asarray(label_ids) * num_classes + np.asarray(predicted_ids)
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def print_table(titles, rows):
    """Prints a table. All columns but the first one are aligned to the right.

    Args:
        titles: list of str.
        rows: iterable of lists of values.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(titles[0])
    for title in titles[1:]:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(*map(str, row))
    Console(highlight=False, markup=False).print(table)


def print_score_table(kind, unit, counted, rows):
    """Prints precision, recall and F1.

    Args:
        kind: str, what is scored: the title of the first column.
        unit: str, what is counted: the title of the last column.
        counted: str, the key of the count.
        rows: iterable of (name, dict of `precision`, `recall`, `f1` and the count).
    """
    figures = ("precision", "recall", "f1")
    cells = (
        [name, *(f"{scores[figure]:.4f}" for figure in figures), scores[counted]]
        for name, scores in rows
    )
    print_table([kind, "precision", "recall", "F1", unit], cells)
