"""Exports of tasks whose norms depend on a condition answer as the tasks do."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import called_or_saved, save_signatures
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS = ["the good film", "a bad plot .", "good", "good film " * 30]
CONDITION = np.random.default_rng(0).normal(size=(4, 2)).astype("float32")
X = {"text": TEXTS, "condition": CONDITION}
BESIDE = {"condition": tf.constant(CONDITION)}


def make_task(cls, pattern="bidirectional", **arguments):
    backbone = kbs.BertBackbone(
        **ONE_LAYER, attention_pattern=pattern, norm_condition=kbs.NormCondition(2, 3)
    )
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), sequence_length=16)
    return randomize(cls(backbone, preprocessor=packer, input_names="text", **arguments))


def make_example(text, condition):
    example = tf.train.Example()
    example.features.feature["text"].bytes_list.value.append(text.encode())
    if condition is not None:
        example.features.feature["condition"].float_list.value.extend(condition)
    return example.SerializeToString()


@called_or_saved
def test_a_classifier(open_signatures, tmp_path):
    """In all signatures."""
    task = make_task(kbs.TextClassifier, num_classes=2)
    wanted = keras.ops.softmax(task.predict(X, verbose=0))
    signatures = open_signatures(task, tmp_path)
    served = signatures["serving_default"](text=tf.constant(TEXTS), **BESIDE)
    np.testing.assert_allclose(served["probabilities"], wanted, rtol=0, atol=1e-5)
    packed = {name: tf.constant(ids) for name, ids in task.data.pack_texts((TEXTS,)).items()}
    served = signatures["serve_ids"](**packed, **BESIDE)
    np.testing.assert_allclose(served["probabilities"], wanted, rtol=0, atol=1e-5)
    examples = [make_example(*row) for row in zip(TEXTS, CONDITION, strict=True)]
    served = signatures["serve_examples"](examples=tf.constant(examples))
    np.testing.assert_allclose(served["probabilities"], wanted, rtol=0, atol=1e-5)
    vectors = signatures["embed"](text=tf.constant(TEXTS), **BESIDE)["pooled_output"]
    own = task.backbone({**packed, **BESIDE})["pooled_output"]
    np.testing.assert_allclose(vectors, own, rtol=0, atol=1e-5)

    with pytest.raises(tf.errors.InvalidArgumentError, match="condition must be finite"):
        broken = tf.constant(np.where(CONDITION > 0, np.nan, CONDITION))
        signatures["serving_default"](text=tf.constant(TEXTS), condition=broken)
    with pytest.raises(tf.errors.InvalidArgumentError, match="condition.*required but could not"):
        signatures["serve_examples"](examples=tf.constant([make_example("good", None)]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="same number of rows"):
        signatures["serve_ids"](**packed, condition=tf.constant(CONDITION[:2]))


def test_a_runtime_of_onnx(tmp_path):
    task = make_task(kbs.TextClassifier, num_classes=2)
    wanted = keras.ops.softmax(task.predict(X, verbose=0))
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    kbs.export_onnx(task, tmp_path / "onnx")
    runtime = kbs.open_runtime(tmp_path / "onnx")
    np.testing.assert_allclose(runtime.predict(X, batch_size=3), wanted, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="a condition of 2 numbers for each row"):
        runtime.predict(TEXTS)


@pytest.mark.long("serving")
@pytest.mark.parametrize("cls", [kbs.TokenClassifier, kbs.EntitySpanClassifier])
def test_windows_of_words(cls, tmp_path):
    task = make_task(cls, label_names=["B-X", "I-X", "O"])
    signatures = save_signatures(task, tmp_path)
    served = signatures["serving_default"](text=tf.constant(TEXTS), **BESIDE)
    found = task.predict(X, verbose=0)
    wanted = [[(entity.label, entity.start, entity.end) for entity in row] for row in found]
    columns = (served[name].numpy() for name in ("labels", "starts", "ends"))
    rows = [zip(*row, strict=True) for row in zip(*columns, strict=True)]
    got = [[(name.decode(), int(a), int(b)) for name, a, b in row if name] for row in rows]
    assert got == wanted and sum(map(len, wanted)) > 4


@pytest.mark.long("serving")
def test_texts_that_go_on(tmp_path):
    task = make_task(kbs.CausalLM, "left_to_right", max_length=3)
    served = save_signatures(task, tmp_path)["serving_default"](text=tf.constant(TEXTS), **BESIDE)
    assert [text.decode() for text in served["texts"].numpy()] == task.predict(X)
