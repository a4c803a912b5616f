import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from keras_bert_suite.masking.unit_choice import (
    choose_groups,
    choose_units,
    geometric_shares,
    shuffle_columns,
)


def units_of(row):
    """Columns of each unit of "-a-bcc": a unit is a letter and its repetitions, "-" is none."""
    units = []
    for column, letter in enumerate(row):
        if letter != "-" and units and column and row[column - 1] == letter:
            units[-1].append(column)
        elif letter != "-":
            units.append([column])
    return units


def arrays_of(rows):
    """(begins, eligible) of rows written as for `units_of`."""
    eligible = np.array([[letter != "-" for letter in row] for row in rows])
    begins = ~eligible
    for row, line in zip(begins, rows, strict=True):
        row[[unit[0] for unit in units_of(line)]] = True
    return begins, eligible


def take_units(row, keys, budget):
    """The loop of `create_masked_lm_predictions`, in the order of the keys."""
    first = [-1] * len(row)
    taken = 0
    for unit in sorted(units_of(row), key=lambda unit: keys[unit[0]]):
        if taken + len(unit) <= budget:
            taken += len(unit)
            for column in unit:
                first[column] = unit[0]
    return first


def take_groups(row, keys, lengths, shares, budget, clip):
    """The rules of spans (clip) and n-grams, a unit at a time."""
    first = [-1] * len(row)
    units = units_of(row)
    room = budget
    for start in sorted(range(len(units)), key=lambda i: keys[units[i][0]]):
        group = [units[start]]  # up to the next token that may not be chosen
        while start + len(group) < len(units) and units[start + len(group)][0] == group[-1][-1] + 1:
            group.append(units[start + len(group)])
        allowed = shares if clip else shares[: len(group)]
        cumulative = np.cumsum(allowed)
        drawn = np.flatnonzero(lengths[units[start][0]] * cumulative[-1] < cumulative)[0] + 1
        group = group[:drawn]
        if clip:
            free = [i for i, unit in enumerate(group) if first[unit[0]] != -1]
            group = group[: free[0]] if free else group
        while sum(map(len, group)) > room:
            group.pop()
        columns = sum(group, [])
        if any(first[column] != -1 for column in columns):
            continue
        room -= len(columns)
        for column in columns:
            first[column] = columns[0]
    return first


@st.composite
def batches(draw):
    """Rows of units of 1 to 5 tokens and gaps, and random numbers for them."""
    length = draw(st.integers(1, 40))
    num_rows = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = []
    for _ in range(num_rows):
        row = ""
        while len(row) < length:
            letter = "-" if rng.random() < 0.1 else "ab"[row[-1:] == "a"]
            row += letter * rng.integers(1, draw(st.integers(2, 6)))
        rows.append(row[:length])
    return rows, rng.random((2, num_rows, length)), rng.integers(0, 20, num_rows)


def test_columns_by_key_the_others_last():
    keys = np.array([[0.5, 0.1, 0.9, 0.3], [0.2, 0.2, 0.0, 0.2]])
    eligible = np.array([[True, True, True, False], [True, True, False, True]])
    assert shuffle_columns(keys, eligible).tolist() == [[1, 0, 2, 3], [0, 1, 3, 2]]


def test_units_literally():
    begins, eligible = arrays_of(["-aabccc-", "-aabccc-"])
    keys = np.array([[0, 0.2, 0, 0.9, 0.1, 0, 0, 0]] * 2)
    # In the order ccc, aa, b: of 4 tokens aa no longer fits, of 2 only aa does.
    first = choose_units(begins, eligible, keys, np.array([4, 2]))
    assert first.tolist() == [[-1, -1, -1, 3, 4, 4, 4, -1], [-1, 1, 1, -1, -1, -1, -1, -1]]


@settings(max_examples=200)
@given(batches())
def test_units_equal_a_loop(batch):
    rows, (keys, _), budget = batch
    chosen = choose_units(*arrays_of(rows), keys, budget)
    wanted = [take_units(*arguments) for arguments in zip(rows, keys, budget, strict=True)]
    assert chosen.tolist() == wanted


def test_spans_literally():
    row = "-aabcdd-ab-"
    begins, eligible = arrays_of([row] * 3)
    keys = np.ones((3, len(row))) * 0.99
    lengths = np.zeros((3, len(row)))
    keys[:, 4], lengths[:, 4] = 0.0, 0.7  # first c, two units: c dd
    keys[:, 1], lengths[:, 1] = 0.1, 0.9  # then aa, three units, but c is taken: aa b
    keys[:, 9], lengths[:, 9] = 0.2, 0.9  # then b before [SEP]: one
    shares = [0.5, 0.25, 0.25]
    first = choose_groups(begins, eligible, keys, lengths, shares, np.array([7, 6, 4]), clip=True)
    assert first.tolist() == [
        [-1, 1, 1, 1, 4, 4, 4, -1, -1, 9, -1],
        [-1, 1, 1, 1, 4, 4, 4, -1, -1, -1, -1],
        # One token is left after c dd: too little for aa, and the next in turn is b.
        [-1, -1, -1, -1, 4, 4, 4, -1, -1, 9, -1],
    ]


def test_ngrams_literally():
    row = "-aabcdd-ab-"
    begins, eligible = arrays_of([row] * 2)
    keys = np.ones((2, len(row))) * 0.99
    lengths = np.zeros((2, len(row)))
    keys[:, 4], lengths[:, 4] = 0.0, 0.7  # first c, two units: c dd
    keys[:, 1], lengths[:, 1] = 0.1, 0.9  # then aa, three units: meets c, skipped
    keys[:, 8], lengths[:, 8] = 0.2, 0.7  # then a b, two of the two before [SEP]
    keys[:, 3] = 0.3  # then b
    shares = [0.5, 0.25, 0.25]
    first = choose_groups(begins, eligible, keys, lengths, shares, np.array([7, 4]), clip=False)
    assert first.tolist() == [
        [-1, -1, -1, 3, 4, 4, 4, -1, 8, 8, -1],
        # One token is left after c dd: a b is shortened to a.
        [-1, -1, -1, -1, 4, 4, 4, -1, 8, -1, -1],
    ]


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("shares", [(1.0,), (6.0, 3.0, 2.0), tuple(geometric_shares(0.2, 10))])
@settings(max_examples=100)
@given(batch=batches())
def test_groups_equal_a_loop(batch, shares, clip):
    rows, (keys, lengths), budget = batch
    chosen = choose_groups(*arrays_of(rows), keys, lengths, shares, budget, clip)
    arguments = zip(rows, keys, lengths, budget, strict=True)
    wanted = [take_groups(r, k, n, np.array(shares), b, clip) for r, k, n, b in arguments]
    assert chosen.tolist() == wanted


def count_first_groups(shares, row, clip, num_rows=20_000):
    """How many of `num_rows` groups that begin at the row's first unit have 1, 2, ... units."""
    begins, eligible = arrays_of([row] * num_rows)
    rng = np.random.default_rng(0)
    keys, lengths = rng.random((2, *begins.shape))
    keys[:, 1] = 0
    first = choose_groups(begins, eligible, keys, lengths, shares, np.full(num_rows, 99), clip)
    return np.bincount(np.sum(first == 1, axis=1), minlength=len(shares) + 1)[1:]


def test_span_lengths_are_geometric_and_renormalised():
    counts = count_first_groups(geometric_shares(0.2, 10), "-" + "ab" * 6, clip=True)
    wanted = 0.2 * 0.8 ** np.arange(10)
    wanted /= wanted.sum()
    assert wanted @ np.arange(1, 11) == pytest.approx(3.8, abs=0.01)  # SpanBERT's mean
    assert stats.chisquare(counts, wanted * counts.sum()).pvalue > 0.01


@pytest.mark.parametrize("shares", [(6, 3, 2), (0.4, 0.3, 0.2, 0.1)])
def test_ngram_shares(shares):
    counts = count_first_groups(shares, "-" + "ab" * 4, clip=False)
    wanted = np.array(shares) / sum(shares)
    assert stats.chisquare(counts, wanted * counts.sum()).pvalue > 0.01
    # Two words are left before the special token: shares of those lengths alone.
    counts = count_first_groups(shares, "-ab-" + "ab" * 4, clip=False)[:2]
    wanted = np.array(shares[:2]) / sum(shares[:2])
    assert stats.chisquare(counts, wanted * 20_000).pvalue > 0.01
