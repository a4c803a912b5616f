"""An index finds what a search over the same vectors finds. faiss is an oracle where installed."""

import keras
import numpy as np
import pytest
from small_embedder import make_embedder

from keras_bert_suite import TextEmbedder, VectorIndex
from keras_bert_suite.heads.vectors.vector_search import search_vectors


def make_vectors(number, seed):
    return np.random.default_rng(seed).normal(2, 3, (number, 8)).astype("float32")


@pytest.fixture(params=[None, "Flat", "HNSW16,Flat", "IVF4,Flat"])
def factory(request):
    if request.param is not None:
        pytest.importorskip("faiss")
    return request.param


def test_the_index_is_the_search(factory, tmp_path):
    corpus, queries = make_vectors(300, 0), make_vectors(20, 1)
    index = VectorIndex(corpus, factory)
    index.save(tmp_path / "index")
    wanted = search_vectors(queries, corpus, 5)
    for searched in (index, VectorIndex.load(tmp_path / "index")):
        same = 0
        for hits, others in zip(searched.search(queries, 5), wanted, strict=True):
            same += len({hit.id for hit in hits} & {hit.id for hit in others})
            if factory in (None, "Flat"):
                scores = [hit.score for hit in others]
                np.testing.assert_allclose([hit.score for hit in hits], scores, atol=1e-6)
        # One of four cells has more than a quarter of the near vectors.
        assert same == 100 if factory in (None, "Flat") else same > 35


@pytest.mark.parametrize("precision", ["float32", "binary"])
def test_added_vectors_ids_and_texts(factory, precision, tmp_path):
    """An index that grew finds what one of all vectors finds, with its ids and texts."""
    if factory not in (None, "Flat") or factory and precision == "binary":
        pytest.skip("Not exact, or not for faiss.")
    vectors, queries = make_vectors(60, 0), make_vectors(5, 1)
    ids, texts = [f"doc {i}" for i in range(60)], [f"text {i}" for i in range(60)]
    wanted = VectorIndex(vectors, factory, precision).search(queries, 4)
    index = VectorIndex(vectors[:40], factory, precision, ids=ids[:40], texts=texts[:40])
    index.add(vectors[40:40], [], texts=[])
    index.add(vectors[40:], ids[40:], texts=texts[40:])
    index.save(tmp_path / "index")
    for grown in (index, VectorIndex.load(tmp_path / "index")):
        for hits, others in zip(grown.search(queries, 4), wanted, strict=True):
            assert [(h.id, h.text) for h in hits] == [(ids[o.id], texts[o.id]) for o in others]
            np.testing.assert_allclose([h.score for h in hits], [o.score for o in others], 1e-5)
    named = VectorIndex(vectors, factory, precision, ids=np.arange(60)[::-1])
    (hit, *_), *_ = named.search(queries, 1)
    assert tuple(hit) == (59 - wanted[0][0].id, pytest.approx(wanted[0][0].score, abs=1e-6))
    assert repr(named).startswith("VectorIndex(60 vectors of 8 numbers, ")


def test_numbers_beyond_the_scale_of_int8_are_cut_off():
    index = VectorIndex(np.array([[0.6, 0.8]]), precision="int8")
    index.add(np.array([[0.0, -1.0]]))
    np.testing.assert_array_equal(index.vectors, [[95, 127], [0, -127]])


def test_texts_are_added_by_the_embedder(tmp_path):
    embedder = make_embedder(prompts={"passage": "the plot : "})
    texts = ["the good film", "a bad film", "the cat"]
    wanted = embedder.index(texts, prompt="passage")
    index = embedder.index(iter(texts[:1]), prompt="passage", keep_texts=True, ids=[7])
    index.add(texts[1:], [8, 9])
    np.testing.assert_allclose(index.vectors, wanted.vectors, atol=1e-6)
    index.save(tmp_path / "index")
    loaded = VectorIndex.load(tmp_path / "index")
    (hits,) = embedder.search(["the cat"], loaded, 1, prompt="passage")
    assert (hits[0].id, hits[0].text) == (9, "the cat")
    with pytest.raises(ValueError, match="Set index.embedder = embedder, or pass vectors"):
        loaded.add(["a"], [1])
    loaded.embedder = make_embedder(pooling="max")
    with pytest.raises(ValueError, match="made by another embedder"):
        loaded.add(["a"], [1])


@pytest.mark.parametrize(
    ("arguments", "added", "error"),
    [
        ({}, {"ids": [1]}, "The index has no ids, and got some"),
        ({"ids": [0]}, {}, "The index has its ids, and got none"),
        ({"ids": [0]}, {"ids": [0]}, "an id of its own, got 0 twice"),
        ({"ids": ["a"]}, {"ids": [0.5]}, "must be a str or an int, got 0.5"),
        ({"ids": ["a"]}, {"ids": ["b", "c"]}, "an id for each of 1 vectors, got 2"),
        ({"texts": ["a"]}, {"texts": [None]}, "a str for each of 1 vectors"),
    ],
)
def test_ids_and_texts_that_do_not_fit(arguments, added, error):
    index = VectorIndex(make_vectors(1, 0), **arguments)
    with pytest.raises(ValueError, match=error):
        index.add(make_vectors(1, 1), **added)
    assert len(index) == 1


def test_a_small_corpus_is_found_whole(factory):
    if factory == "IVF4,Flat":
        pytest.skip("It looks into one of four cells.")
    (hits,) = VectorIndex(make_vectors(3, 0), factory).search(make_vectors(1, 1), 10)
    assert sorted(hit.id for hit in hits) == [0, 1, 2]


def test_an_embedder_searches_its_index():
    embedder = make_embedder(prompts={"passage": "the plot : "})
    corpus, queries = ["the good film", "a bad film", "the cat"], ["good film", "cat"]
    index = embedder.index(corpus)
    assert len(index) == 3
    assert embedder.search(queries, index, 2) == embedder.search(queries, corpus, 2)
    written_out = embedder.index([f"the plot : {text}" for text in corpus])
    prompted = embedder.index(corpus, prompt="passage")
    np.testing.assert_allclose(prompted.vectors, written_out.vectors, atol=1e-6)


def test_an_embedder_hands_its_options_to_the_index():
    embedder, vectors = make_embedder(), make_vectors(9, 0)
    for precision in ("int8", "binary"):
        wanted = VectorIndex(vectors, precision=precision)
        found = embedder.index(vectors, precision=precision)
        np.testing.assert_array_equal(found.vectors, wanted.vectors)
    with pytest.raises(ValueError, match="'SQ8' keeps 8 bits"):
        embedder.index(vectors, faiss_factory="Flat", precision="int8")


def test_an_embedder_of_packed_arrays_makes_an_index_that_knows_no_texts():
    embedder = make_embedder()
    packed = embedder.preprocess_samples(["the good film", "a bad plot"])
    wanted = embedder.index(["the good film", "a bad plot"])
    bare = TextEmbedder(embedder.backbone)
    index = bare.index(packed)
    np.testing.assert_allclose(index.vectors, wanted.vectors, atol=1e-6)
    assert index.probes is None and wanted.probes is not None
    first = {name: array[:1] for name, array in packed.items()}
    assert bare.search(first, index, 1)[0][0].id == 0


def test_bad_input(tmp_path):
    vectors = make_vectors(4, 0)
    with pytest.raises(ValueError, match=r"\(N, H\), got the shape \(8,\)"):
        VectorIndex(vectors[0])
    with pytest.raises(ValueError, match="The corpus is empty"):
        VectorIndex(vectors[:0])
    with pytest.raises(ValueError, match="row 2 has NaN"):
        VectorIndex(np.where(np.arange(4)[:, None] == 2, np.nan, vectors))
    embedder = make_embedder()
    with pytest.raises(
        ValueError, match="keep_texts is for a corpus of texts, got vectors. Pass V"
    ):
        embedder.index(vectors, keep_texts=True)
    index = embedder.index(["a film"], keep_texts=True)
    with pytest.raises(ValueError, match="texts are for vectors. The corpus has its texts. Leave"):
        index.add(["a plot"], texts=["a plot"])
    index = VectorIndex(vectors)
    with pytest.raises(ValueError, match="vectors have 3 dimensions, the index has 8"):
        index.add(vectors[:, :3])
    with pytest.raises(ValueError, match="queries have 3 dimensions, the index has 8"):
        index.search(vectors[:, :3])
    with pytest.raises(ValueError, match="top_k must be an integer of at least 1, got 0"):
        index.search(vectors, 0)
    with pytest.raises(FileNotFoundError):
        VectorIndex.load(tmp_path)
    with pytest.raises(FileExistsError):
        index.save(tmp_path)
    index.save(tmp_path / "index")
    (tmp_path / "index" / "vectors.npy").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="vectors.npy cannot be read"):
        VectorIndex.load(tmp_path / "index")


@pytest.mark.parametrize("precision", ["int8", "binary"])
def test_fewer_bits(precision, tmp_path):
    """Scores are those of the codes, by a transcription. A clear neighbour is found."""
    rng = np.random.default_rng(0)
    corpus = rng.normal(size=(200, 61)).astype("float32")
    queries = corpus[:9] + 0.3 * rng.normal(size=(9, 61)).astype("float32")
    index = VectorIndex(corpus, precision=precision)
    assert index.vectors.nbytes <= corpus.nbytes / (4 if precision == "int8" else 30)
    unit, wanted = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (corpus, queries))
    if precision == "int8":
        kept = np.round(unit * 127 / np.abs(unit).max()) * np.abs(unit).max() / 127
    else:
        kept = np.sign(unit) / np.sqrt(61)
    scores = wanted @ kept.T
    index.save(tmp_path / "index")
    for searched in (index, VectorIndex.load(tmp_path / "index")):
        for row, hits in enumerate(searched.search(queries, 3)):
            assert hits[0].id == row
            got = [hit.score for hit in hits]
            np.testing.assert_allclose(got, np.sort(scores[row])[:-4:-1], atol=1e-5)


def test_precisions_that_are_refused(tmp_path):
    vectors = make_vectors(4, 0)
    with pytest.raises(ValueError, match="precision must be one of .*float32.*int8.*binary"):
        VectorIndex(vectors, precision="int4")
    with pytest.raises(ValueError, match="'SQ8' keeps 8 bits"):
        VectorIndex(vectors, "Flat", precision="int8")
    VectorIndex(vectors).save(tmp_path / "index")
    np.save(tmp_path / "index" / "vectors.npy", vectors[:, :3])
    with pytest.raises(ValueError, match=r"float32 \(4, 3\) are no vectors of index.json"):
        VectorIndex.load(tmp_path / "index")


def test_files_of_two_indexes_are_refused(tmp_path):
    pytest.importorskip("faiss")
    VectorIndex(make_vectors(4, 0), "Flat").save(tmp_path / "a")
    VectorIndex(make_vectors(9, 0), "Flat").save(tmp_path / "b")
    (tmp_path / "b" / "index.faiss").replace(tmp_path / "a" / "index.faiss")
    with pytest.raises(ValueError, match="are of two indexes"):
        VectorIndex.load(tmp_path / "a")
    with pytest.raises(ValueError, match="faiss_factory='IVF99,Flat'.*training points"):
        VectorIndex(make_vectors(4, 0), "IVF99,Flat")


def test_a_prompt_is_put_before_queries():
    embedder = make_embedder()
    embedder.prompts["query"] = "good "
    index = embedder.index(["good cat", "film"], prompt=None)
    found = embedder.search(["cat"], index, 1, prompt="query")
    assert found[0][0].id == 0 and found[0][0].score == pytest.approx(1, abs=1e-6)


def change_weights(embedder):
    for weight in embedder.backbone.transformer_layers[0].weights:
        weight.assign(weight + 0.5 * np.random.default_rng(0).normal(size=weight.shape))


def change_vocabulary(embedder):
    packer = embedder.preprocessor
    words = [word for word in packer.tokenizer.get_vocabulary() if word != "film"]
    packer.tokenizer = type(packer.tokenizer)([*words, "film"])


@pytest.mark.parametrize("change", [change_weights, change_vocabulary, "max", "same", "bfloat16"])
def test_the_index_knows_its_embedder(change, tmp_path):
    """It answers the embedder that made it, in any precision, and refuses another."""
    texts = ["the film was good", "a dull plot", "not bad"]
    keras.utils.set_random_seed(0)
    embedder, other = (
        make_embedder(),
        make_embedder(dtype="bfloat16" if change == "bfloat16" else None),
    )
    if change == "max":
        other = make_embedder(pooling="max")
    other.set_weights(embedder.get_weights())
    if callable(change):
        change(other)
    index = embedder.index(texts, precision="int8")
    index.save(tmp_path / "index")
    for opened in (index, VectorIndex.load(tmp_path / "index")):
        assert embedder.search(texts, opened, top_k=1)[1][0].id == 1
        assert len(other.search(embedder.predict(texts, verbose=0), opened)) == 3
        if change in ("same", "bfloat16"):
            assert other.search(texts, opened, top_k=1)[1][0].id == 1
        else:
            with pytest.raises(ValueError, match="another (embedder|tokenizer).*index anew"):
                other.search(texts, opened)


def train(embedder):
    embedder.backbone.trainable = False
    dense = embedder.backbone.transformer_layers[0].feedforward_output
    dense.trainable = True
    dense.bias.trainable = False  # So no small weight changes.
    embedder.compile(
        keras.optimizers.SGD(50.0),
        lambda y_true, y_pred: keras.ops.sum(
            y_pred * keras.ops.arange(y_pred.shape[-1], dtype="float32"), axis=(1, 2)
        ),
    )
    embedder.fit((["the film", "not bad"],), verbose=0)


def set_vocabulary(embedder):
    tokenizer = embedder.preprocessor.tokenizer
    tokenizer.set_vocabulary(tokenizer.get_vocabulary()[::-1])


@pytest.mark.parametrize("change", [change_weights, change_vocabulary, set_vocabulary, train])
def test_an_index_is_checked_anew_only_after_a_change(change, monkeypatch):
    """What the check encodes takes longer than a query."""
    embedder, encoded = make_embedder(), []
    predict = embedder.predict
    monkeypatch.setattr(
        embedder, "predict", lambda x, *args, **kwargs: encoded.append(x) or predict(x, **kwargs)
    )
    indexes = [embedder.index(texts) for texts in (["the film was good"], ["not bad", "film"])]
    embedder.search(["film"], indexes[0]), embedder.search(["film"], indexes[1])
    encoded.clear()
    for index in indexes:
        embedder.search(["film"], index)
    assert encoded == [["film"], ["film"]]
    change(embedder)
    for _ in range(2):
        with pytest.raises(ValueError, match="another (embedder|tokenizer).*index anew"):
            embedder.search(["film"], indexes[0])
