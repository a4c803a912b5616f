"""Rows leave the batch in the graph of a SavedModel, where `predict` has them leave."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import called_or_saved
from small_texts import TINY, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.heads.base.served import serve

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS = [*make_reviews(10)[0], ""]


@called_or_saved
def test_rows_leave_by_patience(open_signatures, tmp_path):
    keras.utils.set_random_seed(0)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    backbone = kbs.BertBackbone(**{**TINY, "num_layers": 4})
    task = kbs.EarlyExitClassifier(
        backbone, label_names=["no", "yes"], method="pabee", preprocessor=packer
    )
    randomize(task)
    for weight in task.weights:  # Larger products, so that the answers depend on the texts.
        if len(weight.shape) > 1:
            weight.assign(4 * np.array(weight))
    with pytest.raises(ValueError, match="no threshold"):
        serve(task).check()
    task.threshold = 1
    serve_texts = open_signatures(task, tmp_path)["serving_default"]
    found = serve_texts(text=tf.constant(TEXTS))
    logits, layers = task.predict(TEXTS, return_layers=True, verbose=0)
    assert len(set(layers)) > 1
    np.testing.assert_array_equal(found["layers"], layers)
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=1e-5)
    assert found["labels"].numpy().astype(str).tolist() == task.predict_labels(TEXTS)
    assert serve_texts(text=tf.constant(TEXTS[:1]))["layers"].shape == (1,)
    assert serve_texts(text=tf.constant([], tf.string))["probabilities"].shape == (0, 2)


@called_or_saved
def test_rows_leave_by_entropy(open_signatures, tmp_path):
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    task = kbs.EarlyExitClassifier(
        kbs.BertBackbone(**TINY),
        num_classes=2,
        method="fastbert",
        preprocessor=packer,
        threshold=0.99,
    )
    randomize(task)
    served = open_signatures(task, tmp_path)["serving_default"]
    found = served(text=tf.constant(TEXTS))
    np.testing.assert_array_equal(
        found["layers"], task.predict(TEXTS, return_layers=True, verbose=0)[1]
    )
    with pytest.raises(ValueError, match="no batch that rows leave"):
        kbs.export_onnx(task, tmp_path / "onnx")
