"""The share of a batch that each replica takes."""

import keras
import numpy as np
import pytest

from keras_bert_suite.replicas import Member, count_replicas, find_process, take_share

BATCH = (
    {"token_ids": np.arange(20).reshape(10, 2), "padding_mask": np.ones((10, 2))},
    {"mlm": np.arange(15).reshape(5, 3), "nsp": np.arange(5)},
    None,
)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_shares_are_the_batch_cut_by_rows(count):
    shares = [take_share(BATCH, Member(index, count)) for index in range(count)]
    joined = keras.tree.map_structure(
        lambda *parts: None if parts[0] is None else np.concatenate(parts),
        *shares,
        none_is_leaf=True,
    )
    keras.tree.map_structure(np.testing.assert_array_equal, joined[:2], BATCH[:2])
    assert joined[2] is None
    sizes = [len(y["nsp"]) for _, y, _ in shares]
    assert max(sizes) - min(sizes) <= 1
    # The texts of a row stay together.
    assert [len(x["token_ids"]) for x, _, _ in shares] == [2 * size for size in sizes]


def test_rows_with_different_numbers_of_entries_are_refused():
    with pytest.raises(ValueError, match=r"arrays of \[2, 3\] entries"):
        take_share((np.zeros((3, 1)), np.zeros(2)), Member(0, 2))
    with pytest.raises(ValueError, match="is cut by rows"):
        take_share((np.zeros((3, 1)), np.float32(1)), Member(0, 2))


def test_without_distribution_there_is_one_replica():
    assert (find_process(), count_replicas()) == (Member(0, 1), 1)
    assert find_process().leads
