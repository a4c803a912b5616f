"""Batches are compared between processes as they are read."""

from types import SimpleNamespace

import grain
import numpy as np
import pytest

from keras_bert_suite.replicas import Member, processes
from keras_bert_suite.replicas.processes import compare_batches, digest_batch
from keras_bert_suite.runs import joint_start
from keras_bert_suite.runs.batches import Batches

BATCH = ({"ids": np.arange(6).reshape(2, 3)}, np.array(["a", "b"]), None)


def test_a_digest_depends_on_every_value_shape_and_dtype():
    ids, texts = BATCH[0]["ids"], BATCH[1]
    others = [
        ({"ids": ids + (ids == 5)}, texts, None),
        ({"ids": ids.reshape(3, 2)}, texts, None),
        ({"ids": ids.astype("int32")}, texts, None),
        ({"ids": ids}, np.array(["a", "c"]), None),
        ({"ids": ids}, texts, np.ones(2)),
    ]
    assert len({digest_batch(batch) for batch in (BATCH, *others)}) == 6
    # The layout in memory does not count.
    assert digest_batch(({"ids": np.asfortranarray(ids)}, texts, None)) == digest_batch(BATCH)


def test_a_process_alone_gets_its_batches():
    assert list(compare_batches(iter([BATCH, BATCH]))) == [BATCH, BATCH]
    assert list(compare_batches(iter([]))) == []


def test_endless_datasets_are_compared_by_their_first_batches(monkeypatch):
    """Datasets of two processes that differ in their order, and never end."""
    monkeypatch.setattr(joint_start, "find_process", lambda: Member(0, 2))
    task = SimpleNamespace(variables=[], loss=None)

    def check(*orders):
        """What process 0 says if each process has the batches of an order, again and again."""
        sources = [
            Batches(
                grain.MapDataset.source(np.array(order)).map(lambda i: (np.full(2, i),)).repeat(),
                lambda batch: batch,
            )
            for order in orders
        ]
        assert all(source.num_batches is None for source in sources)
        told = []

        def exchange(own):
            told.append(own)
            return told[::-1]

        # Process 1 tells its facts, and process 0 compares its own with them.
        monkeypatch.setattr(processes, "exchange", exchange)
        for source in reversed(sources):
            joint_start.check_shared(task, {"data": source}, steps=5)

    check([1, 2, 3], [1, 2, 3])
    with pytest.raises(ValueError, match="process 1 has another data than process 0"):
        check([1, 2, 3], [1, 3, 2])
