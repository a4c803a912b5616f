"""Texts of many windows go through the model in batches of a bounded size.

test_entities.py has the tags of such texts.
"""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import call_signatures
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    EntitySpanClassifier,
    QuestionAnswerer,
    SegmentPacker,
    WordPieceTokenizer,
)
from keras_bert_suite.heads.base import served_texts
from keras_bert_suite.heads.base.served_texts import count_characters, cut_texts

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

#: Short and long texts by turns, and a text whose windows fill several batches.
TEXTS = ["", "good film", *make_reviews(6)[0], " ".join(make_reviews(6)[0]), "GOOD", "good " * 90]


def make_task(cls, **arguments):
    keras.utils.set_random_seed(2)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=24)
    return randomize(cls(BertBackbone(**ONE_LAYER), preprocessor=packer, **arguments))


def test_spans_of_several_batches(monkeypatch):
    monkeypatch.setattr(served_texts, "MOST_TOKENS", 50)
    task = make_task(EntitySpanClassifier, label_names=["A", "B"])
    for weight in task.head.weights:
        weight.assign(np.random.default_rng(3).normal(size=weight.shape))
    serve = call_signatures(task)["serving_default"]
    got = {name: value.numpy() for name, value in serve(text=tf.constant(TEXTS)).items()}
    wanted = task.predict(TEXTS, verbose=0)
    assert got["num_entities"].tolist() == [len(entities) for entities in wanted]
    assert len(wanted[-1]) > 5
    for row, entities in enumerate(wanted):
        columns = (
            got[name][row][: len(entities)].tolist() for name in ("labels", "starts", "ends")
        )
        places = [(entity.label.encode(), entity.start, entity.end) for entity in entities]
        assert list(zip(*columns, strict=True)) == places
        scores = [entity.score for entity in entities]
        np.testing.assert_allclose(got["scores"][row][: len(entities)], scores, atol=1e-5)


def test_answers_of_several_batches(monkeypatch):
    """Without a threshold. test_spans.py has one, and one batch."""
    monkeypatch.setattr(served_texts, "MOST_TOKENS", 50)
    arguments = {"query_length": 5, "max_answer_length": 7, "stride": 6}
    task = make_task(QuestionAnswerer, **arguments)
    task.no_answer_threshold = None
    questions = [text[:14] for text in make_reviews(len(TEXTS), seed=5)[0]]
    strings = {"question": tf.constant(questions), "context": tf.constant(TEXTS)}
    serve = call_signatures(task)["serving_default"]
    got = {name: value.numpy() for name, value in serve(**strings).items()}
    wanted = task.predict((questions, TEXTS), verbose=0)
    assert got["starts"].tolist() == [answer.start for answer in wanted]
    assert got["ends"].tolist() == [answer.end for answer in wanted]
    np.testing.assert_allclose(got["scores"], [answer.score for answer in wanted], atol=1e-5)
    odds = [answer.null_odds for answer in wanted]
    np.testing.assert_allclose(got["null_odds"], odds, rtol=1e-4, atol=1e-4)
    assert np.isfinite(got["null_odds"]).all() and odds[0] == 1e6


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [([], [0]), ([3, 4], [2]), ([1, 10, 2, 2, 3], [2, 2, 1]), ([30, 30], [1, 1])],
)
def test_no_batch_is_larger_than_its_bound(lengths, sizes, monkeypatch):
    """A window that is larger than the bound has a batch of its own."""
    monkeypatch.setattr(served_texts, "MOST_TOKENS", 20)

    def run(begin, end):
        return [tf.range(begin, end), tf.reshape(end - begin, [1])]

    windows, got = tf.function(lambda lengths: served_texts.run_in_batches(run, lengths))(
        tf.constant(lengths, tf.int32)
    )
    assert windows.numpy().tolist() == list(range(len(lengths)))
    assert got.numpy().tolist() == sizes


def test_places_in_texts():
    """Places in bytes, in texts of one to four bytes a character."""
    texts = ["", "abc", "好 é", "👩\x00é", "", "e\u0301"]
    places = [
        (row, start, end)
        for row, text in enumerate(texts)
        for end in range(len(text) + 1)
        for start in range(end + 1)
    ]

    def count_bytes(row, place):
        return len(texts[row][:place].encode())

    rows = tf.constant([row for row, _, _ in places])
    starts = tf.constant([count_bytes(row, start) for row, start, _ in places])
    ends = tf.constant([count_bytes(row, end) for row, _, end in places])
    counts = count_characters(tf.constant(texts), rows, ends)
    assert counts.numpy().tolist() == [end for _, _, end in places]
    parts = [part.decode() for part in cut_texts(tf.constant(texts), rows, starts, ends).numpy()]
    assert parts == [texts[row][start:end] for row, start, end in places]
