"""Steps that JAX compiles on other threads give the same training, and each is compiled once."""

import contextlib
import threading

import keras
import numpy as np
import pytest
from small_tasks import make_task
from small_texts import make_reviews
from tables import everywhere_for

from keras_bert_suite import AdamW, SegmentPacker
from keras_bert_suite.tasks.base import training_run
from keras_bert_suite.training.compiled_steps import CompiledSteps

pytestmark = pytest.mark.skipif(
    keras.config.backend() != "jax", reason="other backends do not compile each length"
)
LENGTHS = (8, 32)
NUM_ROWS, BATCH_SIZE = 38, 4


@pytest.fixture
def compiled():
    """A list of the names of the threads on which a training step was compiled."""
    import jax

    threads = []

    def listen(event, duration, fun_name="", **_):
        if event == "/jax/core/compile/backend_compile_duration" and "train_step" in fun_name:
            threads.append(threading.current_thread())

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield threads
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture
def make(monkeypatch):
    """A function that makes a classifier, and rows of many lengths."""

    def make():
        keras.utils.set_random_seed(0)
        classifier, _ = make_task("texts", "SegmentPacker", dropout=0.1)
        tokenizer = classifier.preprocessor.tokenizer
        classifier.preprocessor = SegmentPacker(tokenizer, LENGTHS[-1], padding_lengths=LENGTHS)
        classifier.compile(AdamW(1e-3))
        texts, labels = make_reviews(NUM_ROWS)
        return classifier, (
            [" ".join([text] * (1 + i % 4)) for i, text in enumerate(texts)],
            labels,
        )

    return make


def train(classifier, rows, **kwargs):
    return classifier.fit(*rows, batch_size=BATCH_SIZE, verbose=0, **kwargs).history


def test_same_training(make, compiled, monkeypatch):
    classifier, rows = make()
    got = train(classifier, rows, epochs=2, validation_split=0.2)
    threads = {thread for thread in compiled if thread is not threading.main_thread()}
    num_compiled = len(compiled)
    assert threads and not any(thread.is_alive() for thread in threads)

    monkeypatch.setattr(training_run, "compile_ahead", lambda *_: contextlib.nullcontext())
    other, rows = make()
    assert train(other, rows, epochs=2, validation_split=0.2) == got
    for weight, wanted in zip(classifier.weights, other.weights, strict=True):
        np.testing.assert_array_equal(weight, wanted, err_msg=weight.path)
    # Each step was compiled once, and none that was not needed.
    assert len(compiled) == 2 * num_compiled


def test_a_second_fit_compiles_nothing(make, compiled):
    classifier, rows = make()
    train(classifier, rows, epochs=3)
    compiled.clear()
    train(classifier, rows, epochs=1)
    assert len(compiled) <= 1  # the batch of an epoch that is smaller may have another length


def test_after_an_error(make, compiled):
    classifier, rows = make()

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(classifier, rows, callbacks=[Stop()])
    assert not any(thread.is_alive() for thread in compiled if thread != threading.main_thread())
    assert np.isfinite(train(classifier, rows)["loss"]).all()


def test_a_compiler_that_fails(make, monkeypatch):
    classifier, rows = make()
    other_failed = threading.Event()

    def fail(*_):
        if threading.current_thread() is threading.main_thread():
            assert other_failed.wait(60)
        else:
            other_failed.set()
        raise MemoryError("no room")

    before = classifier.get_weights()
    monkeypatch.setattr(CompiledSteps, "_compile", fail)
    with pytest.raises(MemoryError, match="no room"):
        train(classifier, rows)
    monkeypatch.undo()
    assert all(map(np.array_equal, classifier.get_weights(), before))
    assert np.isfinite(train(classifier, rows)["loss"]).all()


def test_a_batch_that_cannot_be_read(make):
    classifier, rows = make()
    pack, num_calls = classifier.pack_texts, []

    def pack_some(texts):
        num_calls.append(1)
        if len(num_calls) > 3:
            raise RuntimeError("the tokenizer broke")
        return pack(texts)

    classifier.pack_texts = pack_some
    with pytest.raises(RuntimeError, match="the tokenizer broke"):
        train(classifier, rows)


@pytest.mark.parametrize(
    "arguments",
    everywhere_for(
        [{"steps_per_execution": 2}, {"run_eagerly": True}, {"jit_compile": False}],
        {"steps_per_execution": 2},
    ),
)
def test_left_to_keras(make, arguments):
    classifier, rows = make()
    classifier.compile(AdamW(1e-3), **arguments)
    assert np.isfinite(train(classifier, rows, steps_per_epoch=2)["loss"]).all()
    assert not isinstance(classifier.train_function, CompiledSteps)
