"""`LanguageModelMixture`: the kinds of rows, their segments and their shares."""

import pickle

import keras
import numpy as np
import pytest
from scipy import stats
from small_texts import VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    LanguageModelMixture,
    Pretrainer,
    SegmentPacker,
    TokenMasker,
    WordPieceTokenizer,
)

TOKENIZER = WordPieceTokenizer(VOCABULARY)
SEGMENTS = {"bidirectional": 0, "left_to_right": 2, "right_to_left": 3, "seq2seq": 4}


def make_pairs(num_rows=8):
    texts = make_reviews(2 * num_rows)[0]
    return SegmentPacker(TOKENIZER, 24).pack(texts[:num_rows], texts[num_rows:])


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
        assert one[name].dtype == other[name].dtype


@pytest.mark.parametrize("kind", SEGMENTS)
def test_literal_segments(kind):
    """The segments are those of unilm-v1; masks and the rest of a batch are the masker's."""
    masker, batch = TokenMasker(TOKENIZER), make_pairs()
    mixed = LanguageModelMixture(masker, {kind: 1.0})(batch, np.arange(8), epoch=2)
    second = SEGMENTS[kind] + (kind in ("bidirectional", "seq2seq"))
    wanted = np.where(batch["segment_ids"] == 1, second, SEGMENTS[kind]) * batch["padding_mask"]
    np.testing.assert_array_equal(mixed["segment_ids"], wanted)
    assert mixed["pair_weights"].tolist() == [float(kind == "bidirectional")] * 8
    masked = masker(batch, np.arange(8), epoch=2)
    rest = {name: mixed[name] for name in masked if name != "segment_ids"}
    assert_same(rest, {name: masked[name] for name in rest})


def test_shares():
    """Chi-squared tests of the shares, and that kinds are independent of epochs and masks."""
    masker = TokenMasker(TOKENIZER, seed=1)
    mixture, rows = LanguageModelMixture(masker), np.arange(6000)
    kinds = np.stack([mixture.draw_kinds(rows, epoch) for epoch in range(2)])
    counts = np.bincount(kinds[0], minlength=4)
    shares = np.array([1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert stats.chisquare(counts, 6000 * shares).pvalue > 1e-3
    table = np.histogram2d(*kinds, bins=4)[0]
    assert stats.chi2_contingency(table).pvalue > 1e-3
    still = LanguageModelMixture(TokenMasker(TOKENIZER, dynamic=False))
    np.testing.assert_array_equal(still.draw_kinds(rows, 0), still.draw_kinds(rows, 7))
    # A row has its kind in every batch.
    np.testing.assert_array_equal(mixture.draw_kinds(rows[::-7], 1), kinds[1][::-7])


def test_tensorflow_equals_numpy():
    tf = pytest.importorskip("tensorflow")
    mixture, batch = LanguageModelMixture(TokenMasker(TOKENIZER)), make_pairs()
    wanted = mixture(batch, np.arange(8), epoch=3)
    rows = tf.data.Dataset.from_tensor_slices(batch).enumerate()
    for dataset in (
        rows.batch(8).map(lambda i, row: mixture(row, i, epoch=3)),
        rows.map(lambda i, row: mixture(row, i, epoch=3)).batch(8),
    ):
        assert_same(next(dataset.as_numpy_iterator()), wanted)
    batch["segment_ids"][:] = 0
    rows = tf.data.Dataset.from_tensor_slices(batch).enumerate().batch(8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="has one text only"):
        list(rows.map(lambda i, row: mixture(row, i)))


def test_copies():
    mixture = LanguageModelMixture(
        TokenMasker(TOKENIZER, unit="word", seed=3), {"seq2seq": 0.5, "left_to_right": 0.5}
    )
    wanted = mixture(make_pairs(), np.arange(8))
    assert mixture.tokenizer is TOKENIZER and mixture.dynamic
    loaded = keras.layers.deserialize(keras.layers.serialize(mixture))
    loaded.tokenizer.set_vocabulary(VOCABULARY)  # Keras keeps it among the assets.
    for twin in (pickle.loads(pickle.dumps(mixture)), loaded):
        assert_same(twin(make_pairs(), np.arange(8)), wanted)


def test_errors():
    masker = TokenMasker(TOKENIZER)
    with pytest.raises(ValueError, match="kinds bidirectional, .* got .'causal'"):
        LanguageModelMixture(masker, {"causal": 1.0})
    with pytest.raises(ValueError, match="sum to 1, got .'seq2seq': 0.4"):
        LanguageModelMixture(masker, {"seq2seq": 0.4})
    with pytest.raises(ValueError, match=r"TokenMasker\(rate=0\) masks none"):
        LanguageModelMixture(TokenMasker(TOKENIZER, rate=0))
    batch = SegmentPacker(TOKENIZER, 24)(make_reviews(3)[0])
    with pytest.raises(ValueError, match="Row 7 is to be a source and its target"):
        LanguageModelMixture(masker, {"seq2seq": 1.0})(batch, [7, 8, 9])
    one_text = LanguageModelMixture(masker, {"left_to_right": 0.5, "right_to_left": 0.5})
    assert set(np.unique(one_text(batch, [7, 8, 9])["segment_ids"])) <= {0, 2, 3}
    del batch["segment_ids"]
    with pytest.raises(ValueError, match="needs segment_ids"):
        one_text(batch, [7, 8, 9])
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4}
    backbone = BertBackbone(30, **sizes, num_segments=6)
    with pytest.raises(ValueError, match="a BertBackbone needs .*'unilm', got 'bidirectional'"):
        one_text.check_task(Pretrainer(backbone))
