import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops
from small_texts import TINY, VOCABULARY, make_reviews

from keras_bert_cli import ask_saved_model
from keras_bert_suite import (
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
    export_saved_model,
)

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

TEXTS, _ = make_reviews(20)
HOSTILE = ["", "   ", "x" * 1_000_000, "good " * 1000, "\x00\ufffd", "GOOD Film\u0301!"]


@pytest.fixture(scope="module")
def classifier():
    keras.utils.set_random_seed(1)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    return TextClassifier(BertBackbone(**TINY), label_names=["no", "yes"], preprocessor=packer)


@pytest.fixture(scope="module")
def served(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved_models") / "reviews" / "1"
    export_saved_model(classifier, path)
    return tf.saved_model.load(str(path)).signatures["serving_default"]


def probabilities(classifier, texts):
    return ops.convert_to_numpy(ops.softmax(classifier.predict(texts, verbose=0)))


@pytest.mark.parametrize("texts", [TEXTS, HOSTILE, TEXTS[:1]])
def test_equals_predict(classifier, served, texts):
    answer = served(text=tf.constant(texts))
    wanted = probabilities(classifier, texts)
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)
    np.testing.assert_array_equal(answer["label_ids"], wanted.argmax(-1))
    names = [classifier.label_names[i] for i in wanted.argmax(-1)]
    assert [label.decode() for label in answer["labels"].numpy()] == names


def test_invalid_utf8_is_dropped_and_no_texts_are_no_answers(classifier, served):
    answer = served(text=tf.constant([b"the \xff\xfe film", b"\xc3", "the film", ""]))
    first, second, third, fourth = answer["probabilities"].numpy()
    np.testing.assert_allclose(first, third, atol=1e-6)
    np.testing.assert_allclose(second, fourth, atol=1e-6)
    assert served(text=tf.constant([], tf.string))["labels"].shape == (0,)


def test_a_row_does_not_depend_on_the_others(served):
    short = served(text=tf.constant(["film"]))["probabilities"].numpy()
    mixed = served(text=tf.constant(["film", "good " * 12]))["probabilities"].numpy()
    np.testing.assert_allclose(short[0], mixed[0], atol=1e-6)


def test_pairs(classifier, tmp_path):
    export_saved_model(classifier, tmp_path / "1", inputs=("premise", "hypothesis"))
    names = (tmp_path / "1" / "assets.extra" / "label_names.txt").read_text()
    assert names.splitlines() == classifier.label_names
    serve = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    answer = serve(premise=tf.constant(TEXTS), hypothesis=tf.constant(TEXTS[::-1]))
    wanted = probabilities(classifier, (TEXTS, TEXTS[::-1]))
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)


def test_a_fresh_process_without_keras(classifier, tmp_path):
    """As a server loads it: TensorFlow and the ops of TensorFlow Text, nothing of Keras."""
    export_saved_model(classifier, tmp_path / "1")
    process = subprocess.run(
        [sys.executable, "-P", ask_saved_model.__file__, str(tmp_path / "1"), "the film was good"],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    wanted = probabilities(classifier, ["the film was good"])[0]
    assert classifier.label_names[wanted.argmax()] in process.stdout
    assert f"{wanted.max():.1%}" in process.stdout


def test_an_existing_version_stays_as_it_is(classifier, tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"old")
    with pytest.raises(FileExistsError, match="exists"):
        export_saved_model(classifier, tmp_path / "1")
    assert (tmp_path / "1" / "saved_model.pb").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["1"]


def test_a_failed_export_leaves_nothing(classifier, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keras_bert_suite.serving.saved_model.write_saved_model", fail)
    monkeypatch.setattr(TextClassifier, "save", fail)
    with pytest.raises(OSError, match="No space left"):
        export_saved_model(classifier, tmp_path / "reviews" / "1")
    assert os.listdir(tmp_path) == []


def test_bad_arguments(classifier, tmp_path):
    with pytest.raises(ValueError, match="different names"):
        export_saved_model(classifier, tmp_path / "1", inputs=("a", "a"))
    bare = TextClassifier(classifier.backbone, num_classes=2)
    with pytest.raises(ValueError, match="no preprocessor"):
        export_saved_model(bare, tmp_path / "1")
