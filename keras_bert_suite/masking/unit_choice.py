"""Chooses the units that a masked language model must predict, for all rows at once.

The functions take random numbers and return columns. B batch, L length, U the maximum number of
units in a row. For units see `maskable_units`.
"""

from collections.abc import Sequence

import numpy as np

from keras_bert_suite.masking.maskable_units import find_first_columns


def shuffle_columns(keys: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """The columns of each row by ascending key, int64 (B, L). Ineligible units come last."""
    # One integer holds key and column. Sorting integers takes a fifth of the time of a stable
    # argsort, and every machine gives equal keys the same order.
    length = keys.shape[1]
    ranks = np.where(eligible, keys, 1.0) * 2.0**44
    return np.sort(ranks.astype("int64") * length + np.arange(length), axis=1) % length


def choose_units(
    begins: np.ndarray, eligible: np.ndarray, keys: np.ndarray, budget: np.ndarray
) -> np.ndarray:
    """Takes whole units in random order. A unit that no longer fits is skipped, not cut.

    Units are visited in the order of the random keys, float (B, L), of their first tokens.
    `begins` and `eligible`, bool (B, L), say where units begin, and which tokens may be masked, and
    `budget`, int (B,), how many. The result is int64 (B, L): for a chosen token the column of its
    unit's first token, else -1.
    """
    num_rows, length = begins.shape
    firsts = np.flatnonzero(begins)
    sizes = np.zeros(num_rows * length, "int32")
    sizes[firsts] = np.diff(firsts, append=num_rows * length)
    sizes = sizes.reshape(begins.shape) * eligible

    visit = shuffle_columns(keys, sizes > 0)
    sizes = np.take_along_axis(sizes, visit, axis=1)
    taken = np.zeros_like(begins)
    room = budget
    while True:
        # The room only shrinks, so a unit that is too long now never fits later. The other
        # units are taken in their order, up to the first unit that no longer fits.
        sizes[sizes > room[:, None]] = 0
        fits = (sizes > 0) & (np.cumsum(sizes, axis=1, dtype="int32") <= room[:, None])
        if not fits.any():
            break
        taken |= fits
        room = room - np.sum(sizes, axis=1, where=fits)
        sizes[fits] = 0

    chosen = np.zeros_like(begins)
    np.put_along_axis(chosen, visit, taken, axis=1)
    first = find_first_columns(begins)
    return np.where(np.take_along_axis(chosen, first, axis=1), first, -1)


def geometric_shares(probability: float, longest: int) -> np.ndarray:
    """How often groups have 1 to `longest` units if each unit ends its group with `probability`.

    >>> geometric_shares(0.5, 3)
    array([1.  , 0.5 , 0.25])
    """
    return (1.0 - probability) ** np.arange(longest)


def choose_groups(
    begins: np.ndarray,
    eligible: np.ndarray,
    keys: np.ndarray,
    lengths: np.ndarray,
    shares: Sequence[float] | np.ndarray,
    budget: np.ndarray,
    clip: bool,
) -> np.ndarray:
    """Takes groups of consecutive units. Each group starts at a unit chosen at random.

    The units of a row are visited in random order, each at most once. A group that would exceed the
    budget is shortened by whole units. If not even its first unit fits, it is skipped. Groups do
    not overlap, and do not cross a token that is not eligible:

    clip=True: the group ends before such a token, and before an earlier group.
    clip=False: only lengths that end before such a token are drawn, in proportion to their shares.
        A group that would overlap an earlier group is skipped.

    The result and the other arguments are as for `choose_units`. `lengths`, float (B, L) in [0, 1),
    random, give the length of a group that starts at a token. `shares`, float (K,), say how often a
    group has 1 to K units. They are positive, with any sum.
    """
    num_rows, length = begins.shape
    cumulative = np.cumsum(shares)
    window = np.arange(len(cumulative))
    # These arrays over units, (B, U), have further columns for groups that reach past the end.
    unit_of = np.cumsum(begins, axis=1) - 1
    num_units = int(unit_of.max(initial=0)) + 1
    rows, firsts = np.nonzero(begins)
    units = unit_of[rows, firsts]
    column = np.full((num_rows, num_units + len(window) + 1), length)
    column[rows, units] = firsts
    blocked = np.ones((num_rows, num_units + len(window)), bool)
    blocked[rows, units] = ~eligible[rows, firsts]
    barrier = np.where(blocked, np.arange(blocked.shape[1]), blocked.shape[1])
    barrier = np.minimum.accumulate(barrier[:, ::-1], axis=1)[:, ::-1]

    visit = shuffle_columns(keys, begins & eligible)
    num_visits = np.sum(begins & eligible, axis=1)
    group_of = np.full((num_rows, num_units), -1)
    room = budget.copy()
    for turn in range(num_visits.max(initial=0)):
        row = np.flatnonzero((room > 0) & (num_visits > turn))
        if not len(row):
            break
        start = visit[row, turn]
        unit = unit_of[row, start]
        left = np.minimum(barrier[row, unit] - unit, len(window))
        total = cumulative[-1] if clip else cumulative[left - 1]
        drawn = 1 + np.searchsorted(cumulative, lengths[row, start] * total, side="right")

        cells = row[:, None], unit[:, None] + window
        sizes = column[cells[0], cells[1] + 1] - start[:, None]
        wanted = (window < drawn[:, None]) & (sizes <= room[row, None])
        free = wanted & ~blocked[cells]
        if clip:
            group = np.logical_and.accumulate(free, axis=1)
        else:
            group = wanted & (free == wanted).all(axis=1, keepdims=True)
        blocked[cells] |= group
        room[row] -= np.max(sizes, axis=1, where=group, initial=0)
        group_rows, offsets = np.nonzero(group)
        group_of[row[group_rows], unit[group_rows] + offsets] = start[group_rows]
    return np.take_along_axis(group_of, unit_of, axis=1)
