"""The keys of a QWERTY keyboard that are next to each other."""

import functools

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


@functools.cache
def find_key_neighbors(letter: str) -> tuple[str, ...]:
    """The letters left, right, above and below a letter of a to z, in its case; () for others.

    >>> find_key_neighbors("s"), find_key_neighbors("P")
    (('w', 'x', 'a', 'd'), ('O',))

    The rows stand straight below each other, without the shift of a real keyboard, as in the
    attacks of Pruthi et al., 2019 (https://arxiv.org/abs/1905.11268).
    """
    place = next(
        ((r, row.index(letter.lower())) for r, row in enumerate(_ROWS) if letter.lower() in row),
        None,
    )
    if place is None or len(letter) != 1:
        return ()
    row, column = place
    beside = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
    found = [_ROWS[r][c] for r, c in beside if 0 <= r < len(_ROWS) and 0 <= c < len(_ROWS[r])]
    return tuple(key.upper() if letter.isupper() else key for key in found)
