"""The share of a batch that each replica takes."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_bert_suite.replicas import (
    Member,
    count_replicas,
    find_local_replicas,
    find_process,
    find_replicas,
    take_share,
)

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


@pytest.mark.parametrize("axes", [("batch", "model"), ("model", "batch")])
def test_replicas_of_jax_are_the_devices_along_the_axis_of_batches(axes, monkeypatch):
    sizes = {"batch": 3, "model": 2}
    mesh = SimpleNamespace(axis_names=axes, shape=tuple(sizes[axis] for axis in axes))
    distribution = SimpleNamespace(device_mesh=mesh, batch_dim_name="batch")
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    monkeypatch.setattr(keras.distribution, "distribution", lambda: distribution)
    assert count_replicas() == 3


@pytest.mark.parametrize(
    ("backend", "members"),
    [
        ("torch", (Member(1, 2),)),
        # A process hands over whole batches.
        ("jax", (Member(0, 1),)),
        # A process has all devices of its strategy.
        ("tensorflow", (Member(0, 3), Member(1, 3), Member(2, 3))),
    ],
)
def test_the_replicas_that_take_rows_from_the_second_of_two_processes(
    backend, members, monkeypatch
):
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    monkeypatch.setattr(find_replicas, "find_process", lambda: Member(1, 2))
    monkeypatch.setattr(find_replicas, "count_replicas", lambda: 3)
    assert find_local_replicas() == members
