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
    rows = list(rows)
    absent = [row for row in chosen if row not in rows]
    if absent:
        raise ValueError(f"everywhere_for chooses among the rows of a table, {rows}; got {absent}.")
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            marks=pytest.mark.every_backend if row in chosen else (),
        )
        for row in rows
    ]
