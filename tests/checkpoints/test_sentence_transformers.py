"""Directories of sentence-transformers, with that library as the oracle."""

import json
import shutil

import numpy as np
import pytest
from small_embedder import make_embedder
from small_texts import make_reviews

from keras_bert_suite import TextEmbedder
from keras_bert_suite.checkpoints import (
    embedder_arguments,
    open_checkpoint,
    save_sentence_transformers,
)

TEXTS = ["", "the", *make_reviews(6)[0], "good " * 40]


def encode(path, texts):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model = sentence_transformers.SentenceTransformer(str(path), device="cpu")
    return model.encode(texts, show_progress_bar=False)


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(embedder, the directory that it was written to)."""
    path = tmp_path_factory.mktemp("saved") / "embedder"
    embedder = make_embedder()
    save_sentence_transformers(embedder, path)
    return embedder, path


@pytest.fixture
def directory(saved, tmp_path):
    """A copy of the directory, to change."""
    return shutil.copytree(saved[1], tmp_path / "copy")


def test_minilm_has_the_vectors_of_sentence_transformers(minilm_directory):
    texts = ["A girl is styling her hair.", "Zwölf Boxkämpfer", "word " * 400]
    embedder = TextEmbedder.from_preset(minilm_directory)
    assert (embedder.pooling_name, embedder.normalize) == ("mean", True)
    assert embedder.preprocessor.sequence_length == 256
    ours = embedder.predict(texts, verbose=0)
    np.testing.assert_allclose(ours, encode(minilm_directory, texts), atol=1e-5)


@pytest.mark.parametrize("pooling, normalize", [("mean", True), ("cls", False), ("max", True)])
def test_a_written_embedder_has_the_same_vectors_there_and_here(
    saved, tmp_path, pooling, normalize
):
    if pooling == "mean":
        embedder, path = saved
    else:
        embedder, path = make_embedder(pooling=pooling, normalize=normalize), tmp_path / "written"
        save_sentence_transformers(embedder, path)
    wanted = embedder.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(encode(path, TEXTS), wanted, atol=1e-5)
    again = TextEmbedder.from_preset(path)
    assert (again.pooling_name, again.normalize) == (pooling, normalize)
    assert again.preprocessor.sequence_length == embedder.preprocessor.sequence_length
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), wanted, atol=1e-6)


def test_a_directory_that_sentence_transformers_wrote(saved, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    embedder, path = saved
    model = sentence_transformers.SentenceTransformer(str(path), device="cpu")
    model.save(str(tmp_path / "theirs"))
    again = TextEmbedder.from_preset(tmp_path / "theirs")
    assert again.preprocessor.sequence_length == embedder.preprocessor.sequence_length
    np.testing.assert_allclose(
        again.predict(TEXTS, verbose=0), embedder.predict(TEXTS, verbose=0), atol=1e-6
    )


@pytest.mark.parametrize(
    "file, change, message",
    [
        (
            "modules.json",
            lambda modules: [*modules, {**modules[1], "idx": 3, "type": "a.models.Dense"}],
            "modules Transformer, Pooling, Normalize, Dense, wanted Transformer, Pooling",
        ),
        (
            "modules.json",
            lambda modules: [{"idx": 0}],
            "read: KeyError: 'type'",
        ),
        ("modules.json", lambda modules: {}, "must hold a JSON array, got dict"),
        (
            "1_Pooling/config.json",
            lambda config: {**config, "pooling_mode_cls_token": True},
            r"asks for the pooling cls \+ mean, wanted one of mean, cls, max",
        ),
        (
            "1_Pooling/config.json",
            lambda config: {"embedding_dimension": 16, "pooling_mode": "lasttoken"},
            "asks for the pooling lasttoken",
        ),
        (
            "config_sentence_transformers.json",
            lambda config: {"prompts": {"query": "ask: "}, "default_prompt_name": "query"},
            "begin with the prompt 'ask: '",
        ),
    ],
)
def test_what_is_not_understood_is_refused(directory, file, change, message):
    write_json(directory / file, change(json.loads((directory / file).read_text())))
    with pytest.raises(ValueError, match=message):
        TextEmbedder.from_preset(directory)


def test_lowercased_texts_are_for_tokenizers_of_word_pieces(directory, monkeypatch):
    config = json.loads((directory / "sentence_bert_config.json").read_text())
    write_json(directory / "sentence_bert_config.json", {**config, "do_lower_case": True})
    assert TextEmbedder.from_preset(directory).preprocessor.tokenizer.lowercase
    checkpoint = open_checkpoint(directory)
    monkeypatch.setattr(type(checkpoint), "tokenizer_config", {"vocabulary": "vocab.json"})
    with pytest.raises(ValueError, match="texts lowercased before a tokenizer that keeps case"):
        embedder_arguments(checkpoint)


def test_prompts_are_left_to_the_caller(directory):
    path = directory / "config_sentence_transformers.json"
    write_json(path, {"prompts": {"query": "ask: ", "document": ""}, "default_prompt_name": None})
    with pytest.warns(UserWarning, match="names prompts for query, .* Put them before"):
        TextEmbedder.from_preset(directory)


def test_what_the_format_cannot_hold(saved, tmp_path):
    embedder = make_embedder(pooling="first_last_average")
    with pytest.raises(ValueError, match="no module for FirstLastPooling"):
        save_sentence_transformers(embedder, tmp_path / "written")
    embedder = make_embedder()
    embedder.preprocessor.truncation = "tail"
    with pytest.raises(ValueError, match="keeps the beginning of a long text"):
        save_sentence_transformers(embedder, tmp_path / "written")
    embedder.preprocessor = None
    with pytest.raises(ValueError, match="preprocessor NoneType"):
        save_sentence_transformers(embedder, tmp_path / "written")
    assert not (tmp_path / "written").exists()
    with pytest.raises(FileExistsError):
        save_sentence_transformers(*saved)
