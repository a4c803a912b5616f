"""Static vectors in files of sentence-transformers, which is the oracle, and of model2vec."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import open_checkpoint, save_sentence_transformers

TEXTS = ["", "The FILM", "xyz good", *make_reviews(6)[0], "good film " * 40]


def encode(path, texts=TEXTS):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model = sentence_transformers.SentenceTransformer(str(path), device="cpu")
    return model.encode(texts, show_progress_bar=False)


def make_static(sequence_length=1_000_000, **kwargs):
    tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
    packer = kbs.SegmentPacker(tokenizer, sequence_length, add_special_tokens=False)
    backbone = kbs.StaticBackbone(len(VOCABULARY), 8, initializer_range=1.0)
    return kbs.TextEmbedder(backbone, preprocessor=packer, **kwargs)


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"normalize": False, "dense_layers": keras.layers.Dense(3, "tanh")},
        {"sequence_length": 4, "dimensions": 5, "prompts": {"query": "the film "}},
    ],
    ids=["plain", "dense", "cut"],
)
def test_a_written_embedder_has_the_same_vectors_there_and_here(kwargs, tmp_path):
    embedder = make_static(**kwargs)
    path = tmp_path / "embedder"
    save_sentence_transformers(embedder, path)
    wanted = embedder.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(encode(path), wanted, atol=1e-6)
    twin = kbs.TextEmbedder.from_preset(path)
    np.testing.assert_allclose(twin.predict(TEXTS, verbose=0), wanted, atol=1e-6)
    assert twin.preprocessor.get_config() == {
        **embedder.preprocessor.get_config(),
        "name": twin.preprocessor.name,
        "tokenizer": twin.preprocessor.get_config()["tokenizer"],
    }
    assert twin.prompts == embedder.prompts


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """The directory of an embedder that sentence-transformers has made and saved."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.models")
    tokenizers = pytest.importorskip("tokenizers")
    path = tmp_path_factory.mktemp("theirs")
    save_sentence_transformers(make_static(normalize=False), path / "ours")
    tokenizer = tokenizers.Tokenizer.from_file(str(path / "ours/0_StaticEmbedding/tokenizer.json"))
    module = modules.StaticEmbedding(tokenizer, embedding_dim=6)
    model = sentence_transformers.SentenceTransformer(modules=[module], device="cpu")
    model.save(str(path / "theirs"))
    return path / "theirs"


def test_their_directory_is_read(theirs):
    embedder = kbs.TextEmbedder.from_preset(theirs)
    assert (embedder.normalize, embedder.output_shape) == (False, (None, 6))
    np.testing.assert_allclose(embedder.predict(TEXTS), encode(theirs), atol=1e-6)
    assert isinstance(kbs.models.open_backbone(theirs), kbs.StaticBackbone)
    classifier = kbs.TextClassifier.from_preset(theirs, num_classes=2)
    assert not classifier.preprocessor.add_special_tokens


@pytest.fixture
def model2vec(tmp_path):
    """A directory as model2vec writes it, with fewer vectors than tokens."""
    save_sentence_transformers(make_static(), tmp_path / "ours")
    folder = tmp_path / "ours" / "0_StaticEmbedding"
    path = tmp_path / "model2vec"
    path.mkdir()
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    # It leaves out the tokens that it does not need.
    kept = [token for token in VOCABULARY if token not in ("[CLS]", "[SEP]", "[MASK]")]
    content["model"]["vocab"] = {token: i for i, token in enumerate(kept)}
    content["added_tokens"] = content["added_tokens"][:0]
    content["post_processor"] = content["padding"] = None
    (path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    table = load_file(folder / "model.safetensors")["embedding.weight"].astype("float16")
    rng = np.random.default_rng(0)
    tensors = {
        "embeddings": table[:9],
        "mapping": rng.integers(0, 9, len(kept)),
        "weights": rng.uniform(0.5, 1.5, len(kept)),
    }
    save_file(tensors, path / "model.safetensors")
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True}
    (path / "config.json").write_text(json.dumps(config))
    modules = [
        {"idx": i, "name": str(i), "path": folder, "type": f"sentence_transformers.models.{kind}"}
        for i, (folder, kind) in enumerate([(".", "StaticEmbedding"), ("1_Normalize", "Normalize")])
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    return path


def test_a_directory_of_model2vec_is_read(model2vec):
    wanted = encode(model2vec)
    found = kbs.TextEmbedder.from_preset(model2vec).predict(TEXTS)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    # Without modules.json, config.json says whether vectors are normalized.
    (model2vec / "modules.json").unlink()
    np.testing.assert_array_equal(kbs.TextEmbedder.from_preset(model2vec).predict(TEXTS), found)
    (model2vec / "config.json").write_text('{"model_type": "model2vec"}')
    lengths = np.linalg.norm(kbs.TextEmbedder.from_preset(model2vec).predict(TEXTS), axis=1)
    assert abs(lengths[1:] - 1).max() > 0.01


def test_wrong_files_are_named(theirs, model2vec, tmp_path):
    save_file({"vectors": np.zeros((3, 2), "float32")}, model2vec / "model.safetensors")
    with pytest.raises(ValueError, match=r"no table of vectors, .* found vectors \(3, 2\)"):
        open_checkpoint(model2vec)
    (model2vec / "tokenizer.json").unlink()
    save_file({"embeddings": np.zeros((3, 2), "float32")}, model2vec / "model.safetensors")
    with pytest.raises(FileNotFoundError, match="has no tokenizer.json"):
        open_checkpoint(model2vec)
    with pytest.raises(ValueError, match="holds weights of StaticEmbedding, which a Bert"):
        kbs.BertBackbone.from_preset(theirs)


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "embedder"
    with pytest.raises(ValueError, match="has the mean of the vectors of all tokens, got a MaxP"):
        save_sentence_transformers(make_static(pooling="max"), path)
    embedder = make_static()
    embedder.preprocessor.add_special_tokens = True
    with pytest.raises(ValueError, match="reads no special tokens"):
        save_sentence_transformers(embedder, path)
    tokenizer = kbs.BytePairTokenizer(make_vocabulary(), MERGES)
    packer = kbs.SegmentPacker(tokenizer, 16, add_special_tokens=False)
    backbone = kbs.StaticBackbone(tokenizer.vocabulary_size(), 8)
    embedder = kbs.TextEmbedder(backbone, preprocessor=packer, pooling="mean")
    with pytest.raises(
        ValueError, match="written of a WordPieceTokenizer, got a BytePairTokenizer"
    ):
        save_sentence_transformers(embedder, path)
    assert not path.exists()
