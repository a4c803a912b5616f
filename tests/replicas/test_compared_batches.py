"""Batches are compared between processes as they are read."""

import numpy as np
import pytest

from keras_bert_suite.replicas import compared_batches
from keras_bert_suite.replicas.compared_batches import compare_batches, digest_batch

pytestmark = pytest.mark.backend_free

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


def test_the_process_with_fewer_batches_is_named(monkeypatch):
    monkeypatch.setattr(compared_batches, "exchange", lambda digest: [digest, "end"])
    with pytest.raises(ValueError, match="process 1 has no batch 1, but process 0 has one"):
        next(compare_batches(iter([BATCH])))
    monkeypatch.setattr(compared_batches, "exchange", lambda digest: ["end", digest])
    with pytest.raises(ValueError, match="process 0 has no batch 1, but process 1 has one"):
        next(compare_batches(iter([BATCH])))
