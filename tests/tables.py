"""Tables that tests are parametrized with."""

import pytest


def narrow(rows, *chosen, others="broad"):
    """The rows of a table as parameters of a test, of which `make test` runs the chosen ones.

    Args:
        rows: iterable of rows, each the only parameter of a test or a tuple of its parameters.
        *chosen: rows. Together they have each head, shape and kind of input that a compiler may
            treat in a way of its own.
        others: str, the mark of the other rows: "broad", or "long" of exports, which TensorFlow
            alone runs.

    Returns:
        list of `pytest.param`, in the order of the rows.
    """
    rows = list(rows)
    absent = [row for row in chosen if row not in rows]
    if absent:
        raise ValueError(f"narrow chooses among the rows of a table, {rows}; got {absent}.")
    return [
        pytest.param(
            *(row if isinstance(row, tuple) else (row,)),
            marks=[] if row in chosen else getattr(pytest.mark, others),
        )
        for row in rows
    ]
