import numpy as np
import pytest

from keras_bert_suite.data.row_orders import (
    find_batch,
    in_order,
    longest_last,
    shuffled,
    shuffled_by_label,
    shuffled_by_length,
    shuffled_without_duplicates,
)

LENGTHS = np.random.default_rng(0).integers(1, 200, 1003)


#: Anchors and positives; each text is in about five rows.
COLUMNS = tuple(
    [f"text {number}" for number in np.random.default_rng(seed).integers(0, 200, 1003)]
    for seed in (1, 2)
)


#: A frequent label, a rare one, and others.
LABELS = np.random.default_rng(3).choice(5, 1003, p=[0.6, 0.2, 0.1, 0.08, 0.02])


@pytest.mark.parametrize("index", [-1, 1.5, "2"])
def test_an_index_is_no_place_before_the_first_batch(index):
    assert find_batch(np.int64(7), 3) == (2, 1)
    with pytest.raises(ValueError, match=f"index must be an integer of at least 0, got {index!r}"):
        find_batch(index, 3)


@pytest.mark.parametrize("epoch", [0, 1, 5])
@pytest.mark.parametrize(
    "order",
    [
        in_order(1003),
        shuffled(1003, seed=1),
        longest_last(LENGTHS),
        shuffled_by_length(LENGTHS, batch_size=8, seed=1),
        shuffled_by_length(LENGTHS, batch_size=2000, seed=1),
        shuffled_without_duplicates(COLUMNS, batch_size=8, seed=1),
        shuffled_without_duplicates((["same"] * 1003,), batch_size=8, seed=1),
        shuffled_by_label(LABELS, rows_per_label=4, seed=1),
        shuffled_by_label(np.arange(1003), rows_per_label=2, seed=1),
    ],
)
def test_every_row_once_an_epoch(order, epoch):
    assert sorted(order(epoch)) == list(range(1003))


@pytest.mark.parametrize(
    "make",
    [
        lambda s: shuffled(1003, s),
        lambda s: shuffled_by_length(LENGTHS, 8, s),
        lambda s: shuffled_without_duplicates(COLUMNS, 8, s),
        lambda s: shuffled_by_label(LABELS, 4, s),
    ],
)
def test_fresh_each_epoch_and_given_by_the_seed(make):
    assert not np.array_equal(make(1)(0), make(1)(1))
    assert not np.array_equal(make(1)(0), make(2)(0))
    assert np.array_equal(make(1)(3), make(1)(3))


def test_rows_of_a_batch_have_similar_lengths():
    def padding(order):
        batches = LENGTHS[order(0)][:1000].reshape(-1, 8)
        return 1 - batches.sum() / (batches.max(axis=1, keepdims=True) * np.ones(8)).sum()

    assert padding(shuffled(1003, seed=1)) > 0.4
    assert padding(shuffled_by_length(LENGTHS, 8, seed=1)) < 0.05


def test_batches_do_not_come_sorted():
    rows = shuffled_by_length(LENGTHS, 8, seed=1)(0)
    means = LENGTHS[rows][:1000].reshape(-1, 8).mean(axis=1)
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


def test_longest_last():
    assert (np.diff(LENGTHS[longest_last(LENGTHS)(0)]) >= 0).all()


def test_no_text_is_twice_in_a_batch():
    rows = shuffled_without_duplicates(COLUMNS, 8, seed=1)(0)
    for batch in rows[:1000].reshape(-1, 8):
        texts = [text for row in batch for text in {column[row] for column in COLUMNS}]
        assert len(set(texts)) == len(texts)
    # A text in every fourth row lets batches of four be distinct, and no larger ones.
    columns = (["a" if row % 4 == 0 else f"{row}" for row in range(40)],)
    batches = shuffled_without_duplicates(columns, 4, seed=1)(0).reshape(-1, 4)
    assert all(sum(row % 4 == 0 for row in batch) == 1 for batch in batches[:7])


def test_rows_of_a_label_share_a_batch():
    """Every batch of whole groups has K rows of a label, or a multiple, of two labels or more."""
    for epoch in range(3):
        order = LABELS[shuffled_by_label(LABELS, 4, seed=1)(epoch)]
        groups = order[: 1003 // 4 * 4].reshape(-1, 4)
        whole = (groups == groups[:, :1]).all(axis=1)
        assert whole.sum() == sum(np.bincount(LABELS) // 4) and whole[: whole.sum()].all()
        batches = order[: whole.sum() * 4 // 32 * 32].reshape(-1, 32)
        counts = np.stack([(batches == label).sum(axis=1) for label in range(5)])
        assert (counts % 4 == 0).all() and ((counts > 0).sum(axis=0) >= 2).all()
        # Each label is spread over the epoch as evenly as its groups allow.
        assert abs(counts[0] - 19).max() <= 8


def test_equal_labels_take_turns():
    labels = np.repeat(np.arange(6), 8)
    order = labels[shuffled_by_label(labels, 2, seed=0)(0)].reshape(4, 6, 2)
    assert all(sorted(turn[:, 0]) == list(range(6)) for turn in order)
