import json
import pickle

import keras
import numpy as np
import pytest
from scipy import stats
from small_texts import VOCABULARY, make_reviews

from keras_bert_suite import (
    SegmentPacker,
    TokenMasker,
    TokenShuffler,
    WordPieceTokenizer,
)
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.masking.token_shuffler import choose_windows
from keras_bert_suite.pretraining import PretrainingBatches

TOKENIZER = WordPieceTokenizer(VOCABULARY)


def pack(*texts):
    return SegmentPacker(TOKENIZER, sequence_length=64, padding_lengths=None)(list(texts))


def make_shuffler(rate=0.2, group_length=3, **masking):
    return TokenShuffler(TokenMasker(TOKENIZER, **masking), rate, group_length)


OUTPUTS = ("token_ids", "mask_positions", "mask_ids", "mask_weights")


def assert_same(masked, other):
    for name in OUTPUTS:
        np.testing.assert_array_equal(np.asarray(masked[name]), np.asarray(other[name]), name)


def test_windows_literally():
    free = np.array([[0, 1, 1, 1, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1, 0, 1]], bool)
    keys = np.array([[0.1, 0.9, 0.8, 0.2, 0.7, 0, 0, 0], [0.5] * 8])
    # Of the first row, tokens 3 to 5 are taken, and then no three neighbours are left.
    rows, firsts = choose_windows(free, keys, np.array([2, 2]), 3)
    assert sorted(zip(rows.tolist(), firsts.tolist(), strict=True)) == [(0, 3), (1, 3)]
    rows, firsts = choose_windows(free, keys, np.array([2, 0]), 2)
    assert sorted(zip(rows.tolist(), firsts.tolist(), strict=True)) == [(0, 3), (0, 5)]
    assert choose_windows(free[:, :2], keys[:, :2], np.array([1, 1]), 3)[0].size == 0


def test_what_must_hold_of_every_row():
    """Masked tokens are the masker's; the others are permuted in groups, and all are predicted."""
    batch = pack(*make_reviews(500)[0])
    shuffler = make_shuffler(rate=0.3)
    masked, shuffled = shuffler.masker(batch, range(500)), shuffler(batch, range(500))
    originals = batch["token_ids"]
    special = np.isin(originals, TOKENIZER.special_token_ids)
    num_groups = 0
    for row in range(500):
        used = shuffled["mask_weights"][row] > 0
        positions = shuffled["mask_positions"][row, used]
        assert (np.diff(positions) > 0).all()
        assert not special[row, positions].any()
        np.testing.assert_array_equal(shuffled["mask_ids"][row, used], originals[row, positions])
        old = masked["mask_positions"][row, masked["mask_weights"][row] > 0]
        assert set(old) <= set(positions)
        np.testing.assert_array_equal(
            shuffled["token_ids"][row, old], masked["token_ids"][row, old]
        )
        new = np.setdiff1d(positions, old)
        assert len(new) % 3 == 0
        num_groups += len(new) // 3
        # Neighbouring groups make one run; each has its tokens in some order.
        for run in np.split(new, np.flatnonzero(np.diff(new) > 1) + 1):
            for group in run.reshape(-1, 3):
                got = shuffled["token_ids"][row, group]
                np.testing.assert_array_equal(np.sort(got), np.sort(originals[row, group]))
        rest = np.setdiff1d(np.arange(originals.shape[1]), positions)
        np.testing.assert_array_equal(shuffled["token_ids"][row, rest], originals[row, rest])
        assert not shuffled["mask_positions"][row, ~used].any()
    assert num_groups > 250


def test_orders_and_numbers_of_groups():
    text = "the film was good and a dull plot"
    batch = {name: np.repeat(array, 12_000, axis=0) for name, array in pack(text).items()}
    # No token is masked but one, which becomes itself.
    shuffler = make_shuffler(
        rate=0.12, max_predictions=1, mask_token_rate=0.0, random_token_rate=0.0
    )
    masked = shuffler.masker(batch, np.arange(12_000))
    shuffled = shuffler(batch, np.arange(12_000))
    counts = (shuffled["mask_weights"].sum(axis=1) - masked["mask_weights"].sum(axis=1)) / 3
    # 10 tokens, and so 0.4 groups on average, if there is room beside the masked token.
    assert set(counts) == {0, 1}
    assert stats.binomtest(int(counts.sum()), 12_000, 0.4).pvalue > 0.001
    orders = {}
    originals = batch["token_ids"][0]
    for row in np.flatnonzero(counts):
        old = masked["mask_positions"][row]
        used = shuffled["mask_positions"][row, shuffled["mask_weights"][row] > 0]
        group = np.setdiff1d(used, old)
        order = tuple(np.argsort([originals[group].tolist().index(t) for t in
                                  shuffled["token_ids"][row, group]]).tolist())  # fmt: skip
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 6
    assert stats.chisquare(list(orders.values())).pvalue > 0.001


def test_a_row_depends_on_its_number_alone():
    shuffler = make_shuffler(seed=5, max_predictions=4)
    batch, row_ids = pack(*make_reviews(32)[0]), np.arange(100, 132)
    wanted = shuffler(batch, row_ids, epoch=2)
    order = np.random.default_rng(0).permutation(32)[:9]
    part = shuffler({name: array[order] for name, array in batch.items()}, row_ids[order], 2)
    assert_same(part, {name: array[order] for name, array in wanted.items()})
    twin = pickle.loads(pickle.dumps(shuffler))
    assert twin.get_config() == shuffler.get_config()
    assert_same(twin(batch, row_ids, epoch=2), wanted)
    config = json.loads(json.dumps(keras.layers.serialize(shuffler)))
    twin = keras.layers.deserialize(config)
    twin.tokenizer.set_vocabulary(VOCABULARY)
    assert_same(twin(batch, row_ids, epoch=2), wanted)
    for other in (shuffler(batch, row_ids, 3), shuffler(batch, row_ids + 1, 2)):
        assert not np.array_equal(other["token_ids"], wanted["token_ids"])
    static = make_shuffler(dynamic=False)
    assert_same(static(batch, row_ids, epoch=1), static(batch, row_ids, epoch=7))
    assert static.dynamic is False and shuffler.tokenizer is TOKENIZER


def test_a_row_does_not_depend_on_its_padding():
    shuffler, texts = make_shuffler(rate=0.3, max_predictions=4), make_reviews(16)[0]
    alone = shuffler(pack(*texts), range(16))
    beside = shuffler(pack(*texts, "the film was good " * 15), range(17))
    assert beside["token_ids"].shape[1] > 2 * alone["token_ids"].shape[1]
    for name in OUTPUTS:
        padded = np.zeros_like(beside[name][:16])
        padded[:, : alone[name].shape[1]] = alone[name]
        np.testing.assert_array_equal(beside[name][:16], padded, name)


def test_pretraining_batches():
    ids = TOKENIZER.tokenize(make_reviews(120)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 6] for i in range(0, 120, 6)])
    arguments = {"sequence_length": 24, "batch_size": 8, "mode": "relations"}
    batches = PretrainingBatches(corpus, make_shuffler(max_predictions=4), **arguments)
    x, y, weights = batches[0]
    # Four of the masker, and two groups of three.
    assert x["mask_positions"].shape == y["mlm"].shape == weights["mlm"].shape == (8, 10)
    assert weights["mlm"].sum() > 8 * 4
    again = pickle.loads(pickle.dumps(batches))[0]
    np.testing.assert_array_equal(again[0]["token_ids"], x["token_ids"])


def test_tensorflow_equals_numpy():
    tf = pytest.importorskip("tensorflow")
    shuffler = make_shuffler(max_predictions=3)
    batch = pack(*make_reviews(10)[0])
    wanted = shuffler(batch, range(10), epoch=4)
    rows = tf.data.Dataset.from_tensor_slices(batch).enumerate()
    batched = rows.batch(10, drop_remainder=True).map(lambda i, row: shuffler(row, i, epoch=4))
    single = rows.map(lambda i, row: shuffler(row, i, epoch=4))
    width = wanted["mask_ids"].shape[1]
    assert batched.element_spec["mask_ids"] == tf.TensorSpec((10, width), "int32")
    for dataset in (batched, single.batch(10)):
        assert_same(next(dataset.as_numpy_iterator()), wanted)
    assert_same(shuffler({name: array[3] for name, array in batch.items()}, 3, 4),
                {name: array[3] for name, array in wanted.items()})  # fmt: skip


def test_bad_arguments():
    with pytest.raises(ValueError, match="rate must be from 0 to 1, got 1.5"):
        make_shuffler(rate=1.5)
    with pytest.raises(ValueError, match="group_length must be an integer of at least 2, got 1"):
        make_shuffler(group_length=1)
