"""A real model with the exact GELU, exported to every format and run in each one's runtime."""

import numpy as np
import pytest
from keras import ops

import keras_bert_suite as kbs

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS = ["a gripping, funny film", "Two hours I want back!", "电影 and the naïve café", ""]


@pytest.fixture(scope="module")
def minilm_classifier(minilm_directory):
    """With a head of large weights, so that the answers differ from text to text."""
    task = kbs.TextClassifier.from_preset(
        str(minilm_directory), num_classes=3, sequence_length=32, dtype="float32"
    )
    assert task.backbone.activation is kbs.layers.gelu_erf
    kernel = task.classifier.kernel
    kernel.assign(np.random.default_rng(0).normal(size=kernel.shape))
    return task


@pytest.fixture(scope="module")
def probabilities(minilm_classifier):
    answers = ops.convert_to_numpy(ops.softmax(minilm_classifier.predict(TEXTS, verbose=0)))
    assert np.ptp(answers, axis=0).max() > 0.1, "answers that are all alike prove little"
    return answers


@pytest.mark.long("serving")
def test_saved_model(minilm_classifier, probabilities, tmp_path):
    path = kbs.export_saved_model(minilm_classifier, tmp_path / "minilm")
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    answer = serve(text=tf.constant(TEXTS))["probabilities"]
    np.testing.assert_allclose(answer, probabilities, atol=1e-5)


@pytest.mark.long("serving")
def test_onnx(minilm_classifier, probabilities, tmp_path):
    import onnxruntime

    kbs.export_onnx(minilm_classifier, tmp_path / "minilm")
    session = onnxruntime.InferenceSession(tmp_path / "minilm" / "model.onnx")
    (answer,) = session.run(["probabilities"], minilm_classifier.preprocessor(TEXTS))
    np.testing.assert_allclose(answer, probabilities, atol=1e-5)


@pytest.mark.long("serving")
def test_litert(minilm_classifier, probabilities, tmp_path):
    from ai_edge_litert.interpreter import Interpreter

    kbs.export_litert(minilm_classifier, tmp_path / "minilm")
    interpreter = Interpreter(str(tmp_path / "minilm" / "model.tflite"))
    tokenizer = minilm_classifier.preprocessor.tokenizer
    packer = kbs.SegmentPacker(tokenizer, sequence_length=32, padding_lengths=(32,))
    answer = interpreter.get_signature_runner()(**packer(TEXTS))["probabilities"]
    np.testing.assert_allclose(answer, probabilities, atol=1e-5)
