"""What `compile` was given is what a file says, and not what it means under this backend."""

import json
import zipfile

import keras
import pytest
from small_texts import ONE_LAYER

from keras_bert_suite import BertBackbone, TextClassifier


@pytest.fixture
def classifier():
    return TextClassifier(BertBackbone(**ONE_LAYER), num_classes=2)


def read_compile_config(file):
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("config.json"))["compile_config"]


@pytest.mark.every_backend
@pytest.mark.parametrize("given", [{}, {"jit_compile": "auto"}, {"run_eagerly": True}])
def test_auto_compilation_is_chosen_by_the_backend_that_opens_the_file(classifier, given, tmp_path):
    classifier.compile(**given)
    classifier.save(tmp_path / "task.keras")
    config = read_compile_config(tmp_path / "task.keras")
    assert config["jit_compile"] == "auto"
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    # Keras compiles under TensorFlow and JAX, and not under PyTorch.
    compiles = keras.config.backend() != "torch" and "run_eagerly" not in given
    assert (loaded.jit_compile, loaded.run_eagerly) == (compiles, "run_eagerly" in given)


@pytest.mark.parametrize("given", [True, False])
def test_a_chosen_compilation_is_kept(classifier, given, tmp_path):
    classifier.compile(jit_compile=given)
    classifier.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert loaded.jit_compile is given
    loaded.save(tmp_path / "again.keras")
    assert read_compile_config(tmp_path / "again.keras")["jit_compile"] is given
