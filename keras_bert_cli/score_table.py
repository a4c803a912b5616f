"""A table of scores for a terminal."""


def make_score_table(kind, unit, rows):
    """A table of precision, recall and F1.

    Args:
        kind: str, what is scored: the title of the first column.
        unit: str, what is counted: the title of the last column.
        rows: iterable of (name, dict of `precision`, `recall` and `f1`, number).

    Returns:
        `rich.table.Table`.
    """
    from rich.table import Table

    table = Table(kind, "precision", "recall", "F1", unit)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, scores, number in rows:
        figures = (f"{scores[figure]:.4f}" for figure in ("precision", "recall", "f1"))
        table.add_row(name, *figures, str(number))
    return table
