"""Batches of several corpora: their rows, their places, and what they refuse."""

import pickle

import numpy as np
import pytest
from small_texts import VOCABULARY

from keras_bert_suite import TokenMasker, WordPieceTokenizer
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining import MixedBatches, PretrainingBatches, share_rows

TOKENIZER = WordPieceTokenizer(VOCABULARY)


def make_batches(token, num_documents, batch_size, mode="doc_sentences"):
    """Batches of documents of 5 to 9 tokens, all of them `token`."""
    rows = [[[token] * 4, [token] * (1 + d % 5)] for d in range(num_documents)]
    masker = TokenMasker(TOKENIZER, max_predictions=1)
    return PretrainingBatches(TokenCorpus.from_documents(rows), masker, 12, batch_size, mode=mode)


@pytest.fixture
def datasets():
    return [make_batches(6, 30, 5), make_batches(7, 12, 2), make_batches(8, 9, 1)]


def test_rows_of_each_dataset_come_in_its_own_order(datasets):
    mixed = MixedBatches(datasets)
    assert len(mixed) == max(map(len, datasets)) > min(map(len, datasets))
    for index in (0, 5, 3 * len(mixed), 1):
        parts = [dataset[index] for dataset in datasets]
        for mixture, *arrays in zip(mixed[index], *parts, strict=True):
            for name in mixture:
                np.testing.assert_array_equal(
                    mixture[name], np.concatenate([part[name] for part in arrays])
                )
        # The second token of a row, or the prediction if it is masked.
        x, y, _ = mixed[index]
        tokens = np.where(x["mask_positions"][:, 0] == 1, y["mlm"][:, 0], x["token_ids"][:, 1])
        assert tokens.tolist() == [6] * 5 + [7] * 2 + [8]


def test_each_dataset_goes_on_at_its_own_place(datasets):
    mixed = MixedBatches(datasets)
    expected = [mixed[index] for index in range(2 * len(mixed))]
    iterator = iter(mixed.repeat(2).to_iter_dataset())
    for _ in range(len(mixed) + 1):
        next(iterator)
    copy = pickle.loads(pickle.dumps(mixed))
    resumed = iter(copy.repeat(2).to_iter_dataset())
    resumed.set_state(iterator.get_state())
    for batch, wanted in zip(resumed, expected[len(mixed) + 1 :], strict=True):
        np.testing.assert_equal(batch, wanted)


@pytest.mark.parametrize("batch_size", [4, 32, 1000])
@pytest.mark.parametrize("shares", [[1], [0.5, 0.5], [0.34, 0.33, 0.33], [0.5, 1 / 6, 1 / 3]])
def test_rows_are_shared(batch_size, shares):
    rows = share_rows(batch_size, shares)
    assert sum(rows) == batch_size
    assert np.abs(rows - batch_size * np.array(shares)).max() < 1


@pytest.mark.parametrize(
    ("batch_size", "shares", "message"),
    [
        (32, [0.5, 0.6], "sum to 1, got 0.5, 0.6"),
        (32, [1.5, -0.5], "Shares must be over 0"),
        (32, [], "sum to 1"),
        (8, [0.98, 0.02], "0.02 is less than a row of a batch of 8"),
    ],
)
def test_what_are_no_shares(batch_size, shares, message):
    with pytest.raises(ValueError, match=message):
        share_rows(batch_size, shares)


def test_datasets_that_do_not_fit(datasets):
    pairs = make_batches(6, 30, 5, mode="pairs")
    with pytest.raises(ValueError, match="same masker and mode, got mlm and mlm, nsp"):
        MixedBatches([datasets[0], pairs])[0]
