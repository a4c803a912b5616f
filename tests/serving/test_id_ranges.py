"""Ids for which the model has no vector are refused, and never counted from the end."""

import numpy as np
import pytest
from small_texts import ONE_LAYER

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.backend("tensorflow")

VOCABULARY_SIZE, NUM_SEGMENTS = ONE_LAYER["vocabulary_size"], 2

#: (name of the input, value): -100 is the usual label to be ignored.
WRONG = [
    ("token_ids", -1),
    ("token_ids", -100),
    ("token_ids", -VOCABULARY_SIZE),
    ("token_ids", VOCABULARY_SIZE),
    ("segment_ids", -1),
    ("segment_ids", NUM_SEGMENTS),
]


def make_inputs(classifier, name=None, value=None):
    inputs = classifier.preprocessor(["good film", "bad"])
    inputs = {key: np.array(array) for key, array in inputs.items()}
    if name is not None:
        inputs[name][-1, -1] = value
    return inputs


@pytest.fixture(scope="module")
def serve(saved_model):
    model = tf.saved_model.load(str(saved_model))
    return lambda inputs, model=model: model.signatures["serve_ids"](
        **{name: tf.constant(array) for name, array in inputs.items()}
    )


@pytest.fixture(scope="module")
def session(onnx_folder):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    return runtime.InferenceSession(onnx_folder / "model.onnx", options)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_saved_model_refuses_them(classifier, serve, name, value):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        serve(make_inputs(classifier, name, value))
    count = VOCABULARY_SIZE if name == "token_ids" else NUM_SEGMENTS
    assert f"{name} must be from 0 to {count - 1}" in caught.value.message
    assert str(value) in caught.value.message


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_onnx_refuses_them(classifier, session, name, value):
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, make_inputs(classifier, name, value))


def test_ids_in_range_are_answered(classifier, serve, session):
    """The last id of the vocabulary, and the last segment."""
    inputs = make_inputs(classifier, "token_ids", VOCABULARY_SIZE - 1)
    inputs["segment_ids"][0, -1] = NUM_SEGMENTS - 1
    logits = classifier.predict(inputs, verbose=0)
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(serve(inputs)["probabilities"], wanted, atol=1e-5)
    (got,) = session.run(["probabilities"], inputs)
    np.testing.assert_allclose(got, wanted, atol=1e-5)
