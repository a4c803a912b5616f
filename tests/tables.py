"""Tables that tests are parametrized with."""

import pytest


def everywhere_for(rows, *chosen):
    """The rows of a table as parameters of a test, of which the chosen ones run on every backend.

    Args:
        rows: iterable of rows, each the only parameter of a test or a tuple of its parameters.
        *chosen: rows that a compiler may treat in a way of its own.

    Returns:
        list of `pytest.param`, in the order of the rows. The other rows run under PyTorch.
    """
    return _mark(rows, chosen, (pytest.mark.every_backend,), ())


def short_for(rows, *chosen, part):
    """The rows of a table as parameters of a test, of which `make test` runs the chosen ones.

    Args:
        rows: as of `everywhere_for`.
        *chosen: rows that see each kind of fault between them: each name of a product once.
        part: str, the part of `make test-long` that runs the other rows, on every backend.

    Returns:
        list of `pytest.param`, in the order of the rows.
    """
    return _mark(rows, chosen, (), left_out(part))


def left_out(part):
    """The marks of a row that a part of `make test-long` alone runs, on every backend."""
    return (pytest.mark.long(part), pytest.mark.every_backend)


def _mark(rows, chosen, marks, other_marks):
    rows = list(rows)
    absent = [row for row in chosen if row not in rows]
    if absent:
        raise ValueError(f"Rows are chosen of a table, {rows}; got {absent}.")
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            marks=marks if row in chosen else other_marks,
        )
        for row in rows
    ]
