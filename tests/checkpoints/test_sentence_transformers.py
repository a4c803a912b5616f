"""Directories of sentence-transformers, with that library as the oracle."""

import json
import shutil

import numpy as np
import pytest
from peer_weights import to_numpy
from small_embedder import make_embedder
from small_texts import make_reviews

from keras_bert_suite import TextEmbedder, TextRanker
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


@pytest.mark.parametrize(
    "pooling, normalize", [("mean", True), ("cls", False), ("max", True), ("last", True)]
)
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


def test_the_last_token(tmp_path):
    """As sentence-transformers pools it: the last token that the mask has, here [SEP]."""
    embedder = make_embedder(pooling="last", normalize=False)
    save_sentence_transformers(embedder, tmp_path / "written")
    config = json.loads((tmp_path / "written" / "1_Pooling" / "config.json").read_text())
    assert config["pooling_mode_lasttoken"] and not config["pooling_mode_mean_tokens"]
    again = TextEmbedder.from_preset(tmp_path / "written")
    packed = embedder.preprocessor(TEXTS)
    states = to_numpy(embedder.backbone(packed)["sequence_output"])
    last = np.asarray(packed["padding_mask"]).sum(axis=1) - 1
    wanted = states[np.arange(len(TEXTS)), last]
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), wanted, atol=1e-5)


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
            lambda modules: [*modules, {**modules[1], "idx": 3, "type": "a.models.LayerNorm"}],
            "modules Transformer, Pooling, Normalize, LayerNorm, wanted Transformer, Pooling",
        ),
        (
            "modules.json",
            lambda modules: [{"idx": 0}],
            "read: KeyError: 'type'",
        ),
        ("modules.json", lambda modules: {}, "must hold a JSON array, got dict"),
        (
            "1_Pooling/config.json",
            lambda config: {**config, "pooling_mode_mean_sqrt_len_tokens": True},
            r"asks for the pooling mean \+ mean_sqrt_len_tokens, wanted cls, max, mean, weightedm",
        ),
        (
            "1_Pooling/config.json",
            lambda config: {"embedding_dimension": 16, "pooling_mode": "median"},
            "asks for the pooling median",
        ),
        (
            "1_Pooling/config.json",
            lambda config: {**config, "include_prompt": "no"},
            "'include_prompt' .* must be true or false, got 'no'",
        ),
        (
            "config_sentence_transformers.json",
            lambda config: {"prompts": {"query": "ask: "}, "default_prompt_name": "query"},
            "begin with the prompt 'ask: '",
        ),
        *(
            (
                "modules.json",
                lambda modules, path=path: [modules[0], {**modules[1], "path": path}, modules[2]],
                "modules outside of its directory",
            )
            for path in ("../1_Pooling", "/etc", "1_Pooling/../../x", "..\\1_Pooling", "C:\\x")
        ),
    ],
)
def test_what_is_not_understood_is_refused(directory, file, change, message):
    write_json(directory / file, change(json.loads((directory / file).read_text())))
    with pytest.raises(ValueError, match=message):
        TextEmbedder.from_preset(directory)


@pytest.mark.parametrize("dimensions", [5, None])
def test_the_first_numbers_of_a_vector(directory, tmp_path, dimensions):
    """`truncate_dim` of sentence-transformers keeps them as they are."""
    whole = TextEmbedder.from_preset(directory).predict(TEXTS, verbose=0)
    file = directory / "config_sentence_transformers.json"
    write_json(file, {**json.loads(file.read_text()), "truncate_dim": dimensions})
    embedder = TextEmbedder.from_preset(directory)
    save_sentence_transformers(embedder, tmp_path / "again")
    for path in (directory, tmp_path / "again"):
        got = TextEmbedder.from_preset(path).predict(TEXTS, verbose=0)
        np.testing.assert_allclose(got, whole[:, :dimensions], atol=1e-6)
    with pytest.raises(ValueError, match="dimensions must be at most 16, the width"):
        TextEmbedder(embedder.backbone, dimensions=17)


def test_tokenizer_json_has_the_ids_of_the_tokenizer(directory, tmp_path):
    import tokenizers

    embedder = TextEmbedder.from_preset(directory)
    packer = embedder.preprocessor
    packer.tokenizer.add_tokens(["covid-19"])
    packer.tokenizer.add_tokens(["[E1]"], special=True)
    size = packer.tokenizer.vocabulary_size()
    embedder = TextEmbedder(
        embedder.backbone.resize_vocabulary(size, seed=0), pooling="mean", preprocessor=packer
    )
    save_sentence_transformers(embedder, tmp_path / "written")
    fast = tokenizers.Tokenizer.from_file(str(tmp_path / "written" / "tokenizer.json"))
    texts = [*TEXTS, "COVID-19 or covid-1", "[E1] x [/E1]", "a\u0301 \u4e2d!?" * 9, ""]
    for text in texts:
        ids = packer([text])["token_ids"][0]
        assert fast.encode(text).ids == [id for id in to_numpy(ids).tolist() if id]
    again = TextEmbedder.from_preset(tmp_path / "written")
    assert again.preprocessor.tokenizer.get_vocabulary() == packer.tokenizer.get_vocabulary()


def test_lowercased_texts_are_for_tokenizers_of_word_pieces(directory, monkeypatch):
    config = json.loads((directory / "sentence_bert_config.json").read_text())
    write_json(directory / "sentence_bert_config.json", {**config, "do_lower_case": True})
    assert TextEmbedder.from_preset(directory).preprocessor.tokenizer.lowercase
    checkpoint = open_checkpoint(directory)
    monkeypatch.setattr(type(checkpoint), "tokenizer_config", {"vocabulary": "vocab.json"})
    with pytest.raises(ValueError, match="texts lowercased before a tokenizer that keeps case"):
        embedder_arguments(checkpoint)


def test_prompts(directory, tmp_path):
    """They are read, used by their names and written; an empty one is no prompt."""
    path = directory / "config_sentence_transformers.json"
    write_json(path, {"prompts": {"query": "good ", "document": ""}, "default_prompt_name": None})
    embedder = TextEmbedder.from_preset(directory)
    assert embedder.prompts == {"query": "good "}
    texts = TEXTS[1:]
    wanted = embedder.predict([f"good {text}" for text in texts], verbose=0)
    got = embedder.predict(np.array(texts), prompt="query", verbose=0)
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    assert (np.abs(got - embedder.predict(texts, verbose=0)) > 1e-4).any()
    save_sentence_transformers(embedder, tmp_path / "written")
    config = json.loads((tmp_path / "written" / path.name).read_text())
    assert config["prompts"] == {"query": "good "}
    assert TextEmbedder.from_preset(tmp_path / "written").prompts == embedder.prompts
    with pytest.raises(ValueError, match="prompt must be one of 'query', .* got 'passage'"):
        embedder.predict(texts, prompt="passage", verbose=0)
    with pytest.raises(ValueError, match="put before the texts of a list.* got tuple"):
        embedder.predict((texts, texts), prompt="query", verbose=0)


def test_sentence_transformers_adds_the_same_prompts(saved, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    embedder = make_embedder(prompts={"query": "good "})
    save_sentence_transformers(embedder, tmp_path / "written")
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "written"), device="cpu")
    wanted = model.encode(TEXTS, prompt_name="query", show_progress_bar=False)
    got = embedder.predict(TEXTS, prompt="query", verbose=0)
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_what_the_format_cannot_hold(saved, tmp_path):
    embedder = make_embedder(pooling="first_last_average")
    with pytest.raises(ValueError, match="no module for FirstLastPooling"):
        save_sentence_transformers(embedder, tmp_path / "written")
    embedder = make_embedder()
    ranker = TextRanker(embedder.backbone)
    with pytest.raises(ValueError, match="got a TextRanker. save_hugging_face writes it"):
        save_sentence_transformers(ranker, tmp_path / "written")
    embedder.preprocessor.truncation = "tail"
    with pytest.raises(ValueError, match="keeps the beginning of a long text"):
        save_sentence_transformers(embedder, tmp_path / "written")
    embedder.preprocessor = None
    with pytest.raises(ValueError, match="preprocessor NoneType"):
        save_sentence_transformers(embedder, tmp_path / "written")
    assert not (tmp_path / "written").exists()
    with pytest.raises(FileExistsError):
        save_sentence_transformers(*saved)
