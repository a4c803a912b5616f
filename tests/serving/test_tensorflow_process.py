"""Exports under PyTorch and JAX run in a process of TensorFlow, which imports the task's module."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import write_answers
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
    export_saved_model,
)
from keras_bert_suite.serving.tensorflow_process import _find_error, write_under_tensorflow

PRINTED = (
    """Traceback (most recent call last):
  File "a.py", line 1, in main
    load()
  File "b.py", line 2, in load
    raise TypeError(text)
TypeError: Could not locate class 'TextScorer'.
"""
    + "config " * 1000
)


@pytest.mark.backend("torch")
def test_the_process_rebuilds_the_task(tmp_path):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 8)
    classifier = TextClassifier(BertBackbone(**ONE_LAYER), 2, preprocessor=packer)
    randomize(classifier)
    texts = ["the good film", "a bad plot ."]
    write_under_tensorflow(write_answers, classifier, tmp_path, verbose=0, texts=texts)
    with np.load(tmp_path / "answers.npz") as file:
        assert file["backend"] == "tensorflow" and keras.config.backend() == "torch"
        wanted = classifier.predict(texts, verbose=0)
        np.testing.assert_allclose(file["answers"], wanted, rtol=0, atol=1e-5)


@pytest.mark.backend("torch")  # TensorFlow needs no other process.
def test_a_class_of_the_script_is_refused(tmp_path, monkeypatch):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 8)
    classifier = TextClassifier(BertBackbone(**ONE_LAYER), 2, preprocessor=packer)
    monkeypatch.setattr(TextClassifier, "__module__", "__main__")
    with pytest.raises(ValueError, match="TextClassifier is a class of the script that runs"):
        export_saved_model(classifier, tmp_path / "1")
    assert not (tmp_path / "1").exists()


def test_the_error_of_the_process_is_shown_from_its_beginning():
    assert "Could not locate class 'TextScorer'" in _find_error(PRINTED)
    assert _find_error("Killed") == "Killed"
