"""Rows of three texts in the two segments that released checkpoints have."""

import json

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import call_signatures
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    BytePairTokenizer,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.serving.portable_formats import write_companions

TEXTS, LABELS = make_reviews(12)
TURNS = (TEXTS, make_reviews(12, seed=1)[0], make_reviews(12, seed=2)[0])


def make_packer(segment_ids=(0, 1, 1), **kwargs):
    return SegmentPacker(WordPieceTokenizer(VOCABULARY), 24, segment_ids=segment_ids, **kwargs)


def make_classifier():
    packer = make_packer(padding_lengths=(24,))
    names = ("title", "body", "comment")
    return randomize(
        TextClassifier(
            BertBackbone(**{**ONE_LAYER, "dropout": 0.0}),
            label_names=["no", "yes"],
            preprocessor=packer,
            dropout=0.0,
            input_names=names,
        )
    )


def test_the_segment_of_each_text():
    rows = (["good film"], ["the plot"], ["bad"])
    # [CLS] good film [SEP] the plot [SEP] bad [SEP]
    for segment_ids, wanted in (
        ((0, 1, 1), [0, 0, 0, 0, 1, 1, 1, 1, 1]),
        ((1, 0, 1), [1, 1, 1, 1, 0, 0, 0, 1, 1]),
        (None, [0, 0, 0, 0, 1, 1, 1, 2, 2]),
    ):
        packed = make_packer(segment_ids).pack(*rows)  # JAX gets a few lengths.
        assert packed["segment_ids"][0, : len(wanted)].tolist() == wanted
        assert packed["padding_mask"].sum() == len(wanted)
    longer = make_packer().pack(["good film", ""], ["the", ""], ["bad", "a"])
    # [CLS] [SEP] [SEP] a [SEP], and padding
    assert longer["segment_ids"][1, :8].tolist() == [0, 0, 1, 1, 1, 0, 0, 0]


def test_the_room_is_shared_as_ever():
    plain, planned = (make_packer(ids, truncation="tail") for ids in (None, (0, 1, 1)))
    longs = [[text * 3 for text in texts] for texts in TURNS]
    ours, wanted = planned.pack(*longs), plain.pack(*longs)
    np.testing.assert_array_equal(ours["token_ids"], wanted["token_ids"])
    np.testing.assert_array_equal(ours["segment_ids"], np.minimum(wanted["segment_ids"], 1))


def test_plans_that_are_refused():
    message = r"segment_ids=\(0, 1, 1\) are for rows of 3 texts, got rows of 2"
    with pytest.raises(ValueError, match=message):
        make_packer().pack(["a"], ["b"])
    with pytest.raises(ValueError, match="an entry of segment_ids must be .*-1"):
        make_packer((0, -1)).pack(["a"], ["b"])
    with pytest.raises(ValueError, match="of this tokenizer see separators alone"):
        pairs = BytePairTokenizer(make_vocabulary(), MERGES)
        SegmentPacker(pairs, 24, segment_ids=(0, 1)).pack(["a"], ["b"])
    classifier = make_classifier()
    with pytest.raises(ValueError, match="title, body, comment; got rows of 2"):
        classifier.predict(TURNS[:2], verbose=0)
    classifier.preprocessor.segment_ids = None
    with pytest.raises(ValueError, match=r"segments 0, 1, 2. Set `segment_ids` .*\(0, 1, 1\)"):
        classifier.predict(TURNS, verbose=0)


def test_a_classifier_of_three_texts(tmp_path):
    classifier = make_classifier()
    classifier.compile("sgd")
    wanted, before = classifier.predict(TURNS, verbose=0), classifier.get_weights()
    losses = []
    for packs in (False, True):
        classifier.set_weights(before)
        fitted = classifier.fit(TURNS, LABELS, batch_size=12, sequence_packing=packs, verbose=0)
        losses.append(fitted.history["loss"][0])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    classifier.set_weights(before)
    plain = randomize(make_classifier())
    plain.set_weights(before)
    plain.preprocessor.segment_ids = (0, 0, 0)
    assert np.abs(plain.predict(TURNS, verbose=0) - wanted).max() > 1e-3
    classifier.save(tmp_path / "turns.keras")
    classifier.save_to_preset(tmp_path / "turns")
    for twin in (
        keras.saving.load_model(tmp_path / "turns.keras"),
        TextClassifier.from_preset(tmp_path / "turns"),
    ):
        np.testing.assert_allclose(twin.predict(TURNS, verbose=0), wanted, atol=1e-5)
    write_companions(classifier, tmp_path)
    packing = json.loads((tmp_path / "packing.json").read_text())
    assert packing["segment_ids"] == [0, 1, 1]


@pytest.mark.backend("tensorflow")
def test_a_graph_of_three_texts():
    tf = pytest.importorskip("tensorflow")
    classifier = make_classifier()
    tensors = make_packer().pack(*map(tf.constant, TURNS))
    arrays = make_packer().pack(*TURNS)
    for name, array in arrays.items():
        np.testing.assert_array_equal(tensors[name], array)
    columns = dict(zip(classifier.input_names, map(tf.constant, TURNS), strict=True))
    logits = classifier.predict(TURNS, verbose=0)
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    found = call_signatures(classifier)["serving_default"](**columns)["probabilities"]
    np.testing.assert_allclose(found, shares, atol=1e-5)
