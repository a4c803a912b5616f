"""Keras under JAX takes the weights out of a model that predicts. The other backends do not."""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.runs.weight_lock import lock_weights

pytestmark = pytest.mark.backend("jax")

TEXTS = ["good film", "bad film"]


def make_classifier():
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(16,))
    return TextClassifier(BertBackbone(**ONE_LAYER), num_classes=2, preprocessor=packer)


@pytest.fixture(scope="module")
def classifier():
    return make_classifier()


@pytest.fixture(autouse=True)
def same_answers(classifier):
    """The classifier answers after each test as before."""
    expected = classifier.predict(TEXTS, verbose=0)
    yield expected
    np.testing.assert_array_equal(classifier.predict(TEXTS, verbose=0), expected)


class AfterBatches(keras.callbacks.Callback):
    """Calls a function after each batch. `self.model` would put the weights back."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def on_train_batch_end(self, batch, logs=None):
        self.function()

    on_test_batch_end = on_predict_batch_end = on_train_batch_end


def stop():
    raise RuntimeError("stop")


def test_threads_may_predict_at_once(classifier, same_answers):
    def answer(number):
        predict = (classifier.predict, classifier.predict_on_batch)[number % 2]
        return predict(TEXTS, **({} if number % 2 else {"verbose": 0}))

    with ThreadPoolExecutor(4) as threads:
        for got in threads.map(answer, range(12)):
            np.testing.assert_allclose(got, same_answers, rtol=0, atol=1e-6)


def test_threads_wait_for_tasks_with_the_same_backbone_alone(classifier):
    """A dataset of one task may predict with another task, in threads of its own."""
    other = make_classifier()

    def hold_other():
        with lock_weights(other):
            return True

    with lock_weights(classifier), ThreadPoolExecutor(1) as threads:
        assert threads.submit(hold_other).result(timeout=60)


def test_an_error_loses_no_weights(classifier):
    callback = AfterBatches(stop)
    with pytest.raises(RuntimeError, match="stop"):
        classifier.predict(TEXTS, callbacks=[callback], verbose=0)
    with pytest.raises(RuntimeError, match="stop"):
        classifier.evaluate(TEXTS, [0, 1], callbacks=[callback], verbose=0)
    too_long = dict.fromkeys(classifier.input, np.ones((2, 65), "int32"))
    # Of TensorFlow it is an error of the graph.
    with pytest.raises(Exception, match=r"length 65|64 is not in \[0, 64\)"):
        classifier.predict(too_long, verbose=0)


def test_an_error_in_a_first_step_loses_no_weights(classifier):
    weights = classifier.get_weights()
    classifier.compile()
    too_long = {name: np.ones((2, 65), "int32") for name in classifier.input}
    for call in (classifier.fit, classifier.evaluate):
        with pytest.raises(Exception, match="length 65"):
            call(too_long, [0, 1], verbose=0)
        assert all(map(np.array_equal, classifier.get_weights(), weights))
    classifier.compile(AdamW(0.0))
    with pytest.raises(Exception, match="length 65"):
        classifier.fit(too_long, [0, 1], verbose=0)
    classifier.fit(TEXTS, [0, 1], verbose=0)
    assert int(classifier.optimizer.iterations) == 1


def test_a_callback_may_predict(classifier, same_answers):
    answers = []
    callback = AfterBatches(lambda: answers.append(classifier.predict(TEXTS, verbose=0)))
    classifier.predict(TEXTS, callbacks=[callback], verbose=0)
    classifier.compile(keras.optimizers.SGD(0.0))
    classifier.fit(TEXTS, [0, 1], callbacks=[callback], verbose=0)
    for answer in answers:
        np.testing.assert_array_equal(answer, same_answers)
    assert len(answers) == 2
