"""What each of the two processes of `test_jax_processes.py` does, one step after the other."""

import signal

import keras
import numpy as np
from heads.cases import FIRST, LABELS
from replicas.gloo_steps import Signal, catch
from small_tasks import make_task

from keras_bert_suite.replicas import process_watch

#: Texts, and batches of words, whose answers have an open length.
TEXTS = FIRST[:2]
WORDS = [[["good", "film"], ["bad"]], [["good"], ["a", "bad", "film"]]]


def make_answerers():
    """Functions that answer texts, batch by batch, and batches of words, and the task of texts."""
    keras.utils.set_random_seed(0)
    classifier, _ = make_task("texts", "SegmentPacker")
    classifier.compile()
    tagger, _ = make_task("words", "SegmentPacker")

    def classify(texts, **arguments):
        # Two devices divide each batch, so they exchange the answers.
        return np.asarray(classifier.predict(texts, batch_size=2, verbose=0, **arguments))

    def tag(batches, steps=None):
        return tagger.predict_tags((batch for batch in batches), steps=steps, verbose=0)

    return classify, tag, classifier


def run_steps(rank, loss):
    """Yields (name, result) of each step. At last process 1 fails, or is killed."""
    process_watch.PERIOD = 0.1
    process_watch.PATIENCE_AFTER_FAILURE = process_watch.GRACE = 1.0
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    classify, tag, classifier = make_answerers()

    def evaluate():
        return classifier.evaluate(TEXTS, LABELS[:2], verbose=0)

    if loss == "failed":
        yield "texts", classify(TEXTS)
        yield "words", tag(WORDS)
        yield "no texts", catch(lambda: classify(TEXTS[: 2 - 2 * rank]))
        yield "other steps", catch(lambda: tag(WORDS, steps=1 + rank))
        yield "other words", catch(lambda: tag(WORDS[::-1] if rank else WORDS))
        yield "other call", catch(evaluate if rank else lambda: classify(TEXTS))
        yield "other batch", catch(lambda: classifier.predict_on_batch(TEXTS[rank:]))
    callback = Fail() if loss == "failed" else Signal(1, signal.SIGKILL)
    yield "lost", catch(lambda: classify(FIRST * 100, callbacks=[callback] if rank else []))


class Fail(keras.callbacks.Callback):
    """Fails in the first batch."""

    def on_predict_batch_end(self, batch, logs=None):
        raise OSError("The disk is gone.")
