"""Two towers with a learned score: the network is transcribed, and texts are encoded once."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_embedder import LENGTH
from small_texts import ONE_LAYER, VOCABULARY, make_reviews
from tables import everywhere_for

import keras_bert_suite as kbs
from keras_bert_suite.layers.heads.pair_score import PairScore

QUERIES = ["a good film", "bad plot", "the cat", "good"]
LISTS = [["good film", "bad"], ["bad plot", "good", "film"], ["a", "good"], ["the bad plot"] * 2]
RELEVANCE = [[1, 0], [1, 0, 0], [0, 1], [0, 2]]
PAIRS = (QUERIES, [row[0] for row in LISTS])


def make_ranker(cls=kbs.TwoTowerRanker, dropout=0.0, **kwargs):
    packer = kbs.SegmentPacker(
        kbs.WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,)
    )
    backbone = kbs.BertBackbone(**ONE_LAYER, dropout=0.0, dtype=kwargs.pop("dtype", None))
    return cls(backbone, preprocessor=packer, dropout=dropout, **kwargs)


@pytest.fixture(scope="module")
def ranker():
    """Not to be changed. Its scores differ enough to be ordered on each backend."""
    keras.utils.set_random_seed(0)
    ranker = make_ranker()
    ranker.pair_score.score.kernel.assign(10 * ranker.pair_score.score.kernel)
    return ranker


@pytest.mark.every_backend
def test_the_score_is_that_of_the_paper():
    """Transcribed in NumPy, also where one query meets several texts."""
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=shape).astype("float32") for shape in ((3, 1, 4), (3, 5, 4)))
    layer = PairScore(6, "relu")
    found = to_numpy(layer(first, second))
    first = np.broadcast_to(first, second.shape)
    parts = np.concatenate([first, second, abs(first - second), first * second], axis=-1)
    weights, bias, out, out_bias = layer.get_weights()
    hidden = np.maximum(parts @ weights + bias, 0)
    np.testing.assert_allclose(found, (hidden @ out + out_bias)[..., 0], atol=1e-6)
    assert layer.compute_output_shape((3, 1, 4), (3, 5, 4)) == (3, 5)


def test_each_text_is_encoded_once(ranker, monkeypatch):
    encoder, _ = ranker.split_towers()
    seen = []
    predict = encoder.predict_on_batch
    monkeypatch.setattr(encoder, "predict_on_batch", lambda x: seen.append(x) or predict(x))
    texts = [text for row in LISTS for text in row]
    scores = ranker.score_matrix(QUERIES, texts)
    rows = sum(len(batch["token_ids"]) for batch in seen)
    assert rows == len(set(QUERIES)) + len(set(texts)) and scores.shape == (4, 9)
    for row, query in enumerate(QUERIES):
        wanted = ranker.predict(([query] * len(texts), texts), verbose=0)
        np.testing.assert_allclose(scores[row], wanted, atol=1e-5)
    seen.clear()
    vectors = ranker.encode(texts)
    np.testing.assert_allclose(ranker.score_matrix(QUERIES, vectors), scores, atol=1e-5)
    ranked = ranker.rank(QUERIES, LISTS)
    for query, row, hits in zip(QUERIES, LISTS, ranked, strict=True):
        wanted = ranker.score_matrix([query], row)[0]
        assert [hit.id for hit in hits] == np.argsort(-wanted, kind="stable").tolist()
    assert ranker.score_matrix([], texts).shape == (0, 9)


def test_blocks_of_pairs_are_one_matrix(ranker, monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(7, ranker.width)).astype("float32")
    wanted = ranker.score_matrix(vectors[:5], vectors)
    module = "keras_bert_suite.heads.towers.two_tower_ranker"
    for size in (3, 15):
        monkeypatch.setattr(f"{module}._PAIRS_AT_ONCE", size)
        np.testing.assert_allclose(ranker.score_matrix(vectors[:5], vectors), wanted, atol=1e-4)


@pytest.mark.every_backend
def test_lists_are_scored_as_their_pairs(ranker):
    """The loss of lists, whose query is encoded once, is that of the scores of pairs."""
    ranker.compile("sgd")
    loss = kbs.RankingLoss()
    found = ranker.evaluate((QUERIES, LISTS), RELEVANCE, batch_size=4, verbose=0)
    scores = np.full((4, 3), 0.0, "float32")
    labels = np.full((4, 3), -1.0, "float32")
    for row, texts in enumerate(LISTS):
        scores[row, : len(texts)] = ranker.score_matrix([QUERIES[row]], texts)[0]
        labels[row, : len(texts)] = RELEVANCE[row]
    found = found[0] if isinstance(found, list) else found
    assert found == pytest.approx(float(to_numpy(loss(labels, scores))), rel=1e-4)


def test_it_learns_end_to_end_and_on_cached_vectors():
    """Which of two texts lacks the word that the query has: no cosine orders them so."""
    texts, labels = make_reviews(96, seed=3)
    good = [t for t, label in zip(texts, labels, strict=True) if label == "yes"]
    other = [t for t, label in zip(texts, labels, strict=True) if label == "no"]
    number = min(len(good), len(other))
    lists = [[a, b] for a, b in zip(good[:number], other[:number], strict=True)]
    queries, relevance = ["good"] * len(lists), [[0, 1]] * len(lists)
    ranker = make_ranker(dropout=0.1, dtype="mixed_bfloat16")
    ranker.compile(kbs.AdamW(kbs.LinearWarmupDecay(3e-3)), head_learning_rate=1e-2)
    ranker.fit((queries[:32], lists[:32]), relevance[:32], batch_size=8, epochs=8, verbose=0)
    assert ranker.score((queries[32:], lists[32:]), relevance[32:])["recall@1"] > 0.8
    cached = make_ranker(dropout=0.1)
    before = cached.backbone.get_weights()
    history = cached.fit_on_features(
        (queries, lists), relevance, batch_size=16, epochs=15, optimizer="adam", verbose=0
    ).history
    assert history["loss"][-1] < history["loss"][0]
    for old, new in zip(before, cached.backbone.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.filterwarnings("error:Your input ran out of data")
def test_each_epoch_on_cached_vectors_has_all_rows():
    """Without a step, the loss of an epoch of uneven batches is that of all rows."""
    rows = ((QUERIES, LISTS), RELEVANCE)
    ranker = make_ranker()
    ranker.compile("sgd")
    wanted = ranker.evaluate(*rows, batch_size=3, verbose=0, return_dict=True)["loss"]
    history = ranker.fit_on_features(
        *rows,
        batch_size=3,
        epochs=3,
        validation_data=rows,
        optimizer=keras.optimizers.SGD(0.0),
        verbose=0,
    ).history
    assert history["loss"] == pytest.approx([wanted] * 3, abs=1e-5)
    assert history["val_loss"] == pytest.approx([wanted] * 3, abs=1e-5)


def add_loras(rankers):
    """An adapter for each of rankers on one encoder."""
    for seed, ranker in enumerate(rankers):
        ranker.adapt(kbs.LoRA(rank=2), name=f"of_{seed}", verbose=False)
        for weight in ranker.trainable_variables:
            weight.assign(np.random.default_rng(seed).normal(0, 0.5, weight.shape))


@pytest.mark.parametrize(
    "adapted", everywhere_for([True, False], True), ids=["two adapters", "int8"]
)
def test_vectors_are_those_of_what_the_encoder_has_become(adapted):
    first = make_ranker()
    rankers = [first]
    if adapted:
        rankers += [kbs.TwoTowerRanker(first.backbone, preprocessor=first.preprocessor)]
    before = [ranker.score_matrix(QUERIES[:1], QUERIES)[0] for ranker in rankers]
    if adapted:
        add_loras(rankers)
    else:
        first.quantize("int8")
    scores = [ranker.score_matrix(QUERIES[:1], QUERIES)[0] for ranker in rankers]
    for ranker, found in zip(rankers, scores, strict=True):
        wanted = ranker.predict((QUERIES[:1] * len(QUERIES), QUERIES), verbose=0)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert np.abs(scores[0] - before[0]).max() > 1e-6


def test_saved_and_loaded(ranker, tmp_path):
    wanted = ranker.predict(PAIRS, verbose=0)
    ranker.save(tmp_path / "ranker.keras")
    ranker.save_to_preset(tmp_path / "preset")
    for again in (
        keras.models.load_model(tmp_path / "ranker.keras"),
        kbs.TwoTowerRanker.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(again.predict(PAIRS, verbose=0), wanted, atol=1e-6)
        assert again.hidden_dim == ranker.hidden_dim and again.width == ranker.width


def test_a_new_score_on_a_checkpoint(ranker, tmp_path):
    embedder = kbs.TextEmbedder(ranker.backbone, pooling="max", preprocessor=ranker.preprocessor)
    kbs.checkpoints.save_sentence_transformers(embedder, tmp_path / "embedder")
    with pytest.warns(UserWarning, match="no weights for a score of two vectors"):
        again = kbs.TwoTowerRanker.from_preset(tmp_path / "embedder")
    found, wanted = again.encode(QUERIES), embedder.predict(QUERIES, verbose=0)
    wanted = wanted * np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    dense = kbs.TextEmbedder(
        ranker.backbone,
        dense_layers=keras.layers.Dense(3, "tanh"),
        preprocessor=ranker.preprocessor,
    )
    kbs.checkpoints.save_sentence_transformers(dense, tmp_path / "dense")
    with pytest.raises(ValueError, match="has layers after its pooling"):
        kbs.TwoTowerRanker.from_preset(tmp_path / "dense")


def test_wrong_arguments(ranker):
    with pytest.raises(ValueError, match="hidden_dim must be an integer of at least 1, got 0"):
        make_ranker(hidden_dim=0)
    with pytest.raises(ValueError, match="vectors have 3 numbers, those of this ranker have 16"):
        ranker.score_matrix(QUERIES, np.zeros((2, 3), "float32"))
    with pytest.raises(ValueError, match="vector at row 1 has NaN"):
        ranker.score_matrix(np.array([[0.0] * 16, [np.nan] * 16]), QUERIES)
    packed = {n: np.ones((2, 3, LENGTH), "int32") for n in ranker.backbone.input}
    with pytest.raises(ValueError, match=r"arrays \(N, 2, L\), got \w+ of the shape \(2, 3, 16\)"):
        ranker.predict(packed, verbose=0)
    with pytest.raises(ValueError, match="predict takes pairs"):
        ranker.predict((QUERIES, LISTS), verbose=0)


@pytest.mark.backend("tensorflow")
def test_a_saved_model_has_an_encoder_and_a_scorer(ranker, tmp_path):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    path = kbs.export_saved_model(ranker, tmp_path / "m")
    signatures = tf.saved_model.load(str(path)).signatures
    queries, texts = map(tf.constant, PAIRS)
    wanted = ranker.predict(PAIRS, verbose=0)
    found = signatures["serving_default"](query=queries, text=texts)["relevance"]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    vectors = [signatures["encode"](text=column)["embedding"] for column in (queries, texts)]
    np.testing.assert_allclose(vectors[0], ranker.encode(QUERIES), atol=1e-5)
    names = ("query_embedding", "text_embedding")
    found = signatures["score"](**dict(zip(names, vectors, strict=True)))["relevance"]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    lists = [["good", "a bad film", ""]] * 4
    ranked = signatures["rank"](query=queries, candidates=tf.constant(lists))
    for row, hits in enumerate(ranker.rank(QUERIES, lists)):
        assert ranked["order"][row].numpy().tolist() == [hit.id for hit in hits]
        np.testing.assert_allclose(ranked["scores"][row], [hit.score for hit in hits], atol=1e-5)
