"""A classifier, its SavedModel, and a server without Python to ask it."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
    export_onnx,
    export_saved_model,
)


@pytest.fixture(scope="session")
def classifier():
    """A task whose answers differ from text to text. Not to be changed."""
    keras.utils.set_random_seed(1)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    task = TextClassifier(BertBackbone(**ONE_LAYER), label_names=["no", "yes"], preprocessor=packer)
    randomize(task)
    margins = np.diff(task.predict(make_reviews(20)[0], verbose=0))
    task.classifier.bias.assign_sub([0, np.median(margins)])
    return task


@pytest.fixture(scope="session")
def saved_model(classifier, tmp_path_factory):
    """`pathlib.Path` of its version folder. Not to be changed."""
    pytest.importorskip("tensorflow_text")
    return export_saved_model(classifier, tmp_path_factory.mktemp("saved_models") / "reviews")


@pytest.fixture(scope="session")
def pair_model(classifier, tmp_path_factory):
    """As `saved_model`, of pairs with the names "premise" and "hypothesis"."""
    pytest.importorskip("tensorflow_text")
    path = tmp_path_factory.mktemp("saved_models") / "pairs"
    return export_saved_model(classifier, path, inputs=("premise", "hypothesis"))


@pytest.fixture(scope="session")
def onnx_folder(classifier, tmp_path_factory):
    """`pathlib.Path` of its ONNX model. Not to be changed."""
    pytest.importorskip("tf2onnx")
    folder = tmp_path_factory.mktemp("onnx") / "reviews"
    export_onnx(classifier, folder)
    return folder


@pytest.fixture(scope="session")
def native_server(tmp_path_factory):
    """`NativeServer`, compiled for this session."""
    native_server = pytest.importorskip("serving.native_server")
    return native_server.NativeServer.compile(tmp_path_factory.mktemp("native"))
