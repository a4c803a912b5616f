"""Lays the rows of a batch out in groups, each as wide as its own rows, for attention on a CPU.

On a CPU attention takes more time than the dense layers, and most of this time is reading and
writing the attention probabilities. So a group should have rows of one length, which make few pairs
of tokens.
"""

import numpy as np

from keras_bert_suite.preprocessing.sequence_packing import FIXED_COST, fill_rows

#: The cost of a group, in the unit of `FIXED_COST`: the calls of its operations.
GROUP_COST = 4096

#: The groups of a batch where nothing is compiled. With more of them rows are fuller.
NUM_GROUPS = 32

#: The widths of groups that are compiled, as shares of the longest row. A batch has one group with
#: the first width, or groups with all widths and about as many rows in each. More choices would be
#: more shapes to compile.
WIDTH_SHARES = (1.0, 0.875, 0.75, 0.625, 0.5)


def lay_out_groups(
    padding_mask: np.ndarray, num_groups: int = NUM_GROUPS, compiled: bool = False
) -> tuple[np.ndarray, ...]:
    """Finds a place in groups of packed rows for each token of a batch.

    No row of the batch is divided. The function looks for the groups with the least cost.
    All batches have the same number of groups, since Keras wants the same number of arrays.

    Args:
        padding_mask: int (..., L), 0 on padding. All axes but the last count rows of the batch.
        num_groups: int, the maximum number of groups. Each row of the batch is a packed row.
            Batches of 32 rows of 16 to 512 tokens are 94% full with 8 groups, 98% with 16, and
            nearly 100% with 32.
        compiled: bool, whether a step is compiled for each shape. Then the groups take few shapes,
            their number is that of `WIDTH_SHARES`, and several rows of the batch stand side by side
            in a packed row. The batches above have ten shapes, and are 90% full.

    Returns:
        tuple of int32 (R_g, W_g), b * L + l of the token at each place, and -1 at places without a
        token. A group that is not needed is (0, 1).
    """
    is_token = padding_mask.reshape(-1, max(padding_mask.shape[-1], 1)) != 0
    lengths = is_token.sum(axis=1)
    groups: list[tuple[list[list[int]], int]] = [([[]], 1)]  # A place without a token.
    if lengths.any():
        groups = _fill_few_shapes(lengths) if compiled else _cut_by_length(lengths, num_groups)
    groups += [([], 1)] * ((len(WIDTH_SHARES) if compiled else num_groups) - len(groups))
    tokens = np.arange(is_token.size, dtype="int32").reshape(is_token.shape)
    return tuple(_place_tokens(rows, width, tokens, is_token) for rows, width in groups)


def _place_tokens(rows, width, tokens, is_token):
    layout = np.full((len(rows), width), -1, "int32")
    for place, row in zip(layout, rows, strict=True):
        if row:
            filled = np.concatenate([tokens[b][is_token[b]] for b in row])
            place[: len(filled)] = filled
    return layout


def _cut_by_length(lengths, num_groups):
    """list of (rows, width) of groups of similar length, one row of the batch in each row."""
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    group_cost = GROUP_COST
    cuts = _find_cuts(lengths[order], group_cost)
    while len(cuts) > num_groups:
        group_cost *= 1.5
        cuts = _find_cuts(lengths[order], group_cost)
    return [([[b] for b in order[i:j].tolist()], int(lengths[order[i]])) for i, j in cuts]


def _find_cuts(lengths, group_cost):
    """list of (begin, end) of groups of descending lengths that have the least cost together."""
    # The least costs of the first i rows, and where the last of their groups begins.
    least, begins = np.zeros(len(lengths) + 1), [0]
    costs = lengths * (FIXED_COST + lengths)
    for end in range(1, len(lengths) + 1):
        totals = least[:end] + costs[:end] * np.arange(end, 0, -1) + group_cost
        begins.append(int(totals.argmin()))
        least[end] = totals.min()
    cuts, end = [], len(lengths)
    while end:
        cuts.append((begins[end], end))
        end = begins[end]
    return cuts[::-1]


def _fill_few_shapes(lengths):
    """list of (rows, width) of one group, or of a group for each of `WIDTH_SHARES`."""
    longest = int(lengths.max())
    widest = longest + -longest % max(1, (1 << longest.bit_length()) // 8)
    best, least = [], np.inf
    for shares in (WIDTH_SHARES[:1], WIDTH_SHARES):
        widths = [max(1, round(widest * share)) for share in shares]
        number = -(-int(lengths.sum()) * len(widths) // sum(widths))
        rows = None
        while rows is None:
            # At most four significant bits, so that there are few shapes.
            number += -number % max(1, (1 << number.bit_length()) // 16)
            # The numbers of rows differ by at most one; there are as many of the wider.
            numbers = [-(-(number - g) // len(widths)) for g in range(len(widths))]
            rows = fill_rows(lengths, np.repeat(widths, numbers).tolist())
            number += 1
        ends = np.cumsum(numbers)
        cost = sum(
            n * width * (FIXED_COST + width) for n, width in zip(numbers, widths, strict=True)
        )
        if cost < least:
            groups = [rows[end - n : end] for n, end in zip(numbers, ends, strict=True)]
            best, least = list(zip(groups, widths, strict=True)), cost
    return [group for group in best if group[0]]
