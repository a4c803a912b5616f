"""Embedders on static vectors: predicted, distilled, trained.

The oracles are the graph of the model, and the rule of model2vec with the layers of transformers
and the components of scikit-learn.
"""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_embedder import make_embedder, make_pairs
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.heads.vectors import static_vectors
from keras_bert_suite.heads.vectors.static_distillation import project

#: With an empty text, a text of unknown tokens, and a long text.
TEXTS = ["", "xyz", *make_reviews(30)[0], "good film " * 100]
FIRST = VOCABULARY.index("the")  # The tokens before it are special.


def make_static(sequence_length=4096, **kwargs):
    tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
    packer = kbs.SegmentPacker(tokenizer, sequence_length, add_special_tokens=False)
    backbone = kbs.StaticBackbone(len(VOCABULARY), 8, initializer_range=1.0)
    return kbs.TextEmbedder(backbone, preprocessor=packer, **kwargs)


@pytest.fixture(scope="module")
def teacher():
    return make_embedder()


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"normalize": False}, {"sequence_length": 3}, {"dimensions": 5}],
    ids=["normalized", "plain", "cut", "dimensions"],
)
def test_predicted_vectors_are_those_of_the_graph(kwargs, monkeypatch):
    for name, size in (("_TEXTS", 7), ("_TOKENS", 16), ("_PIECE", 5)):
        monkeypatch.setattr(static_vectors, name, size)
    embedder = make_static(**kwargs)
    packed = embedder.data.pack_texts((TEXTS,))
    found = embedder.predict(TEXTS)
    np.testing.assert_allclose(found, embedder.predict(packed, verbose=0), atol=1e-6)
    assert (found.dtype, found[0].any(), found[1].any()) == ("float32", False, True)


def test_what_the_table_does_not_say_is_left_to_the_graph(monkeypatch):
    """A Dense layer, another pooling and special tokens change the vectors."""
    for embedder in (make_static(pooling="max"), make_static(dense_layers=keras.layers.Dense(3))):
        packed = embedder.data.pack_texts((TEXTS[2:8],))
        wanted = to_numpy(embedder(packed))
        np.testing.assert_allclose(embedder.predict(TEXTS[2:8]), wanted, atol=1e-6)
    embedder = make_static()
    before = embedder.predict(["good"])
    embedder.preprocessor.add_special_tokens = True
    assert abs(embedder.predict(["good"]) - before).max() > 1e-3
    with pytest.raises(TypeError, match="prompts"):
        embedder.predict(["good"], prompts="query")


def encode_tokens_as_model2vec(teacher, path, dimensions):
    """The rows of the ordinary tokens, before their weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    decomposition = pytest.importorskip("sklearn.decomposition")
    save_hugging_face(teacher.backbone, path)
    model = transformers.BertModel.from_pretrained(path).eval()
    rows = torch.tensor([[2, token, 3] for token in range(FIRST, len(VOCABULARY))])
    with torch.no_grad():
        vectors = model(rows).last_hidden_state.mean(1).numpy()
    return decomposition.PCA(dimensions, svd_solver="full").fit_transform(vectors)


def test_components_are_those_of_scikit_learn():
    decomposition = pytest.importorskip("sklearn.decomposition")
    vectors = np.random.default_rng(0).normal(size=(40, 7)) * np.arange(1, 8) + 3
    wanted = decomposition.PCA(4, svd_solver="full").fit_transform(vectors)
    np.testing.assert_allclose(project(vectors, 4), wanted, atol=1e-9)


@pytest.mark.parametrize("shares_of", ["ranks", "texts"])
def test_distilled_vectors_are_those_of_model2vec(teacher, shares_of, tmp_path):
    number = len(VOCABULARY) - FIRST
    texts = ["the film the xyz", "good"] if shares_of == "texts" else None
    if texts is None:
        shares = 1 / np.arange(2, number + 2)
    else:
        shares = np.zeros(number)
        for word, count in (("the", 2), ("film", 1), ("good", 1)):
            shares[VOCABULARY.index(word) - FIRST] = count
    wanted = encode_tokens_as_model2vec(teacher, tmp_path / "teacher", 5)
    weights = 1e-4 / (1e-4 + shares / shares.sum())
    embedder = kbs.distill_static(teacher, 5, texts=texts, verbose=0)
    table = to_numpy(embedder.backbone.token_embedding.embeddings)
    # The states are those of float32, in another order of sums.
    np.testing.assert_allclose(table[FIRST:] / weights[:, None], wanted, atol=1e-4)
    assert not table[:FIRST].any()
    # An unknown token says nothing.
    vectors = embedder.predict(["xyz", "good xyz", "good"])
    assert not vectors[0].any()
    np.testing.assert_allclose(vectors[1], vectors[2], atol=1e-6)


def test_a_distilled_embedder_keeps_all_directions(teacher):
    """With all components and no weights, differences of tokens are those of the teacher."""
    embedder = kbs.distill_static(teacher, None, sif_coefficient=None, verbose=0)
    unscaled = make_embedder(normalize=False)
    unscaled.set_weights(teacher.get_weights())
    wanted = unscaled.predict(["good", "bad", "film"], verbose=0)
    table = to_numpy(embedder.backbone.token_embedding.embeddings)
    found = table[[VOCABULARY.index(word) for word in ("good", "bad", "film")]]
    np.testing.assert_allclose(
        np.linalg.norm(found[1:] - found[0], axis=1),
        np.linalg.norm(wanted[1:] - wanted[0], axis=1),
        rtol=1e-4,
    )


def test_the_adapter_of_the_teacher_acts(teacher):
    """Tasks that share a backbone have an adapter each."""
    backbone = teacher.backbone.from_config(teacher.backbone.get_config())
    first, second = (
        kbs.TextEmbedder(backbone, preprocessor=teacher.preprocessor) for _ in range(2)
    )
    vectors, random = {}, np.random.default_rng(0)
    for name, task in (("a", first), ("b", second)):
        task.adapt(kbs.LoRA(2), name, verbose=False)
        for weight in backbone.weights_of_adapter(name).values():
            weight.assign(random.normal(size=weight.shape))
        vectors[name] = kbs.distill_static(task, 4, verbose=0).predict(TEXTS)
    found = kbs.distill_static(first, 4, verbose=0).predict(TEXTS)
    np.testing.assert_allclose(found, vectors["a"], atol=1e-5)


def test_bad_teachers_and_sizes_are_refused(teacher):
    with pytest.raises(ValueError, match="takes a TextEmbedder, got a TextClassifier. Build one"):
        kbs.distill_static(kbs.TextClassifier(kbs.BertBackbone(**ONE_LAYER), 2))
    with pytest.raises(ValueError, match=r"dimensions must be at most 16, .* \(16\) .* got 17"):
        kbs.distill_static(teacher, 17)
    for wrong in (1.5, "1e-4"):
        with pytest.raises(
            ValueError, match=f"must be between 0 and 1, got {wrong!r}. None leaves"
        ):
            kbs.distill_static(teacher, 4, sif_coefficient=wrong)
    with pytest.raises(ValueError, match="texts must be a list of texts, got the text 'good film'"):
        kbs.distill_static(teacher, 4, texts="good film", verbose=0)
    with pytest.raises(ValueError, match="The 2 texts have no known token"):
        kbs.distill_static(teacher, 4, texts=["xyz", ""], verbose=0)
    with pytest.raises(ValueError, match="a teacher on a BertBackbone with the preprocessor None"):
        kbs.distill_static(kbs.TextEmbedder(kbs.BertBackbone(**ONE_LAYER)))


def test_static_vectors_are_trained_and_saved(tmp_path):
    """Fast vectors follow each change of the table."""
    embedder = make_static()
    pairs = ["the good film", "a bad plot", "great acting"], ["good", "bad", "great"]
    before = embedder.similarity_pairwise(*pairs).mean()
    embedder.compile(kbs.AdamW(0.1))
    embedder.fit(pairs, epochs=5, batch_size=3, verbose=0)
    assert embedder.similarity_pairwise(*pairs).mean() > before + 0.1
    wanted = embedder.predict(TEXTS)
    embedder.save(tmp_path / "embedder.keras")
    twin = keras.saving.load_model(tmp_path / "embedder.keras")
    np.testing.assert_array_equal(twin.predict(TEXTS), wanted)
    embedder.save_to_preset(tmp_path / "preset")
    twin = kbs.TextEmbedder.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(twin.predict(TEXTS), wanted)


def test_a_classifier_learns_on_static_vectors():
    texts, labels = make_reviews(120)
    embedder = make_static()
    classifier = kbs.TextClassifier(
        embedder.backbone, label_names=["no", "yes"], preprocessor=embedder.preprocessor
    )
    classifier.compile(kbs.AdamW(0.05))
    classifier.fit(texts, labels, epochs=6, verbose=0)
    assert classifier.score(texts, labels)["accuracy"] > 0.9


def test_similarities_of_the_teacher_are_learned(teacher):
    (first, second), _ = make_pairs(24)
    wanted = teacher.similarity_pairwise(first, second)
    student = kbs.distill_static(teacher, None, verbose=0)

    def measure():
        return np.abs(student.similarity_pairwise(first, second) - wanted).mean()

    before = measure()
    student.compile(kbs.AdamW(0.01), loss=kbs.CosineRegression())
    student.fit((first, second), wanted, epochs=20, batch_size=24, verbose=0)
    assert measure() < before / 2


def test_fewer_tokens_and_unpooled_prompts():
    embedder = make_static(prompts={"query": "the film "})
    small = embedder.keep_tokens(["good", "film"])
    np.testing.assert_array_equal(small.predict(["good film"]), embedder.predict(["good film"]))
    pooling = kbs.layers.PromptlessPooling("mean")
    bare = kbs.TextEmbedder(
        embedder.backbone,
        pooling=pooling,
        preprocessor=embedder.preprocessor,
        prompts=embedder.prompts,
    )
    found = bare.predict(["good", "bad"], prompt="query", verbose=0)
    np.testing.assert_allclose(found, embedder.predict(["good", "bad"]), atol=1e-6)
