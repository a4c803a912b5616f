"""Permutation language modelling: which tokens are predicted, and in which order.

Pure NumPy. B batch, L length. A part of a row is permuted by itself: one of its halves, or the row.
"""

import numpy as np

from keras_bert_suite.masking.unit_choice import choose_units


def choose_spaced_spans(
    starts: np.ndarray,
    begins: np.ndarray,
    is_inside: np.ndarray,
    goals: np.ndarray,
    draws: np.ndarray,
    max_gram: int,
    alpha: int,
    beta: int,
) -> np.ndarray:
    """Chooses spans at random distances, from left to right, and fills up with single units.

    A span has n units. n is drawn from 1 to `max_gram`, with a probability in proportion to 1 / n,
    and is at most what the goal still lacks. A random part of `n * alpha // beta` tokens is left
    out before the span, and the rest after it. Then the span moves right to the next token where a
    span may start. A pass ends if the goal is reached, or a span would reach the end of the part.
    What the goal lacks then is filled up with random units that are not chosen.

    A span that is too long for the goal loses its last units. If its first unit is too long, the
    pass ends. Units of one token always fit, so that exactly `goals` tokens are chosen.

    Args:
        starts: bool (B, L), the tokens where a span may start.
        begins: bool (B, L), the tokens where units begin. All `starts` are among them.
        is_inside: bool (B, L), the tokens of the part, which are neighbours.
        goals: int (B,), how many tokens to choose, at most those of the part.
        draws: float (B, L, 3) in [0, 1): of the n and of the distance of the span with this number;
            and the key of the token by which units are filled up.
        max_gram, alpha, beta: int.

    Returns:
        bool (B, L), the chosen tokens.

    Source: zihangdai/xlnet, data_utils.py, `_sample_mask`.
    """
    num_rows, length = starts.shape
    cumulative = np.cumsum(1 / np.arange(1, max_gram + 1))
    grams = 1 + np.searchsorted(cumulative, draws[:, :, 0] * cumulative[-1], side="right")
    ends = is_inside.argmax(axis=1) + is_inside.sum(axis=1)
    # The first start at each column or after it, L if there is none.
    columns = np.where(starts, np.arange(length), length)
    following = np.full((num_rows, length + 1), length)
    following[:, :length] = np.minimum.accumulate(columns[:, ::-1], axis=1)[:, ::-1]
    # The unit of each column, and the column of each unit, L for units past the last one.
    units = np.cumsum(begins, axis=1) - 1
    unit_columns = np.full((num_rows, length + max_gram), length)
    rows, firsts = np.nonzero(begins)
    unit_columns[rows, units[rows, firsts]] = firsts

    chosen = np.zeros_like(starts)
    cursors, lacks = is_inside.argmax(axis=1), goals.copy()
    row = np.flatnonzero(lacks > 0)
    for turn in range(length):
        row = row[(cursors[row] < ends[row]) & (lacks[row] > 0)]
        if not len(row):
            break
        n = np.minimum(grams[row, turn], lacks[row])
        distance = n * alpha // beta
        before = (draws[row, turn, 1] * distance).astype("int64")
        first = following[row, np.minimum(cursors[row] + before, length)]
        exists = first < length
        row, n, first = row[exists], n[exists], first[exists]
        after = (distance - before)[exists]
        stops = unit_columns[row[:, None], units[row, first][:, None] + np.arange(1, max_gram + 1)]
        fits = np.arange(max_gram) < n[:, None]
        is_whole = np.max(stops, axis=1, where=fits, initial=0) < ends[row]
        fits &= stops - first[:, None] <= lacks[row, None]
        goes_on = is_whole & fits[:, 0]
        row, first, after = row[goes_on], first[goes_on], after[goes_on]
        end = np.max(stops[goes_on], axis=1, where=fits[goes_on], initial=0)
        columns = np.arange(length)
        chosen[row] |= (columns >= first[:, None]) & (columns < end[:, None])
        lacks[row] -= end - first
        cursors[row] = end + after
    eligible = is_inside & ~chosen
    return chosen | (choose_units(begins, eligible, draws[:, :, 2], lacks) >= 0)


def order_blocks(keys: np.ndarray, block_length: int) -> np.ndarray:
    """The places of tokens in a random order of each block: int64 (B, L).

    The tokens of a part are cut into blocks of `block_length`. All blocks of a row have the same
    random order, that of the keys, float (B, L), of the first block. A later block comes later.

    >>> order_blocks(np.array([[0.6, 0.9, 0.3, 0.1, 0.1, 0.1]]), block_length=3)
    array([[1, 2, 0, 4, 5, 3]])
    """
    orders = keys[:, :block_length].argsort(axis=1, kind="stable").argsort(axis=1)
    columns = np.arange(keys.shape[1])
    within = columns % block_length
    return columns - within + orders[:, within]


def rank_part(
    order: np.ndarray, is_chosen: np.ndarray, is_functional: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ranks of the tokens as queries and as keys: int64 (B, L) twice.

    A query attends to the keys whose rank is below its own. All tokens see the tokens that are not
    chosen and have no function. A target sees the chosen tokens before it in the order, and not
    itself. A functional token sees itself, too. All others see no chosen token.

    Args:
        order: int (B, L), from 0 on, as from `order_blocks`.
        is_chosen: bool (B, L), as from `choose_spaced_spans`.
        is_functional: bool (B, L), [CLS] and [SEP], which are no targets, and are hidden as if they
            were.

    Source: zihangdai/xlnet, data_utils.py, `_local_perm`.
    """
    key_ranks = np.where(is_chosen | is_functional, order, -1)
    is_target = is_chosen & ~is_functional
    return key_ranks + ~is_target, key_ranks
