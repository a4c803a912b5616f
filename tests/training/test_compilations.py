"""What JAX compiles, and how often."""

import functools
import itertools

import keras
import numpy as np
import pytest
from heads.cases import BATCH_SIZE, LENGTH
from small_tasks import compile_model, make_task, predict, predicted_columns

from keras_bert_suite.layers import BertEmbeddings

pytestmark = pytest.mark.backend("jax")
EVENT = "/jax/core/compile/backend_compile_duration"


def choose(tasks, chosen):
    """The other tasks are of `make test-long`."""
    long = pytest.mark.long("combinations")
    return [pytest.param(task, marks=() if task == chosen else long) for task in tasks]


@pytest.fixture
def compiled():
    """A list of the functions that JAX compiles from now on."""
    import jax

    names = []

    def listen(event, duration, fun_name="", **_):
        if event == EVENT:
            names.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def pad_tokens(array, name, length):
    """An array (B, 16) of tokens with a longer padding."""
    if array.shape[1:] != (LENGTH,) or name == "mask_positions":
        return array
    value = -100 if name == "labels" else 0
    return np.pad(array, ((0, 0), (0, length - LENGTH)), constant_values=value)


@pytest.mark.parametrize("task", choose(["texts", "words", "pretraining"], "words"))
def test_a_step_is_compiled_once_for_each_length(compiled, task):
    model, (x, y, *weights) = make_task(task, "none")
    compile_model(model)
    y = y if isinstance(y, dict) else np.array(y)
    lengths = (LENGTH, 24)

    def read():
        for length in itertools.cycle(lengths):
            inputs = {name: pad_tokens(array, name, length) for name, array in x.items()}
            labels = pad_tokens(y, "labels", length) if task == "words" else y
            padded = [pad_tokens(w, "weights", length) if task == "words" else w for w in weights]
            batch = (inputs, labels, *padded)
            yield keras.tree.map_structure(lambda array: array[:BATCH_SIZE], batch)

    model.fit(read(), epochs=2, steps_per_epoch=2 * len(lengths), verbose=0)
    assert sum("train_step" in name for name in compiled) == len(lengths)
    assert sum("update_weights" in name for name in compiled) == 1


@pytest.mark.parametrize("task", choose(["texts", "masks"], "masks"))
def test_texts_are_predicted_by_compiled_code_alone(task, monkeypatch):
    """Keras would call the model itself, too, if a layer of the task were not built."""
    import jax

    model, (x, *_) = make_task(task, "SegmentPacker")
    call, traced = BertEmbeddings.call, []

    @functools.wraps(call)
    def note_call(layer, token_ids, *args, **kwargs):
        traced.append(isinstance(token_ids, jax.core.Tracer))
        return call(layer, token_ids, *args, **kwargs)

    monkeypatch.setattr(BertEmbeddings, "call", note_call)
    x = predicted_columns(model, x)
    predict(model, x=x)
    model.predict_on_batch(x)
    assert traced and all(traced)
