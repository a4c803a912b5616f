"""Hard negatives are those of sentence-transformers, for the same vectors and scores."""

import numpy as np
import pytest
from small_embedder import make_embedder
from small_texts import make_reviews

from keras_bert_suite import InBatchNegatives, MarginMSE, VectorIndex, mine_negatives

NUM_PAIRS, NUM_TEXTS, WIDTH = 12, 40, 6
RNG = np.random.default_rng(0)
QUERIES = [f"query {i % 9}" for i in range(NUM_PAIRS)]  # Three queries have two positives.
TEXTS = [f"text {i}" for i in range(NUM_TEXTS)]
POSITIVES = [TEXTS[i] for i in RNG.permutation(NUM_TEXTS)[:NUM_PAIRS]]
EACH = [*sorted(set(QUERIES)), *TEXTS]  # The order of a set is another one in each process.
VECTORS = {text: RNG.normal(size=WIDTH).astype("float32") for text in EACH}
VECTORS = {text: v / np.linalg.norm(v) for text, v in VECTORS.items()}
JUDGED = {(q, t): float(RNG.normal()) for q in sorted(set(QUERIES)) for t in TEXTS}


@pytest.fixture(scope="module")
def small():
    return make_embedder(normalize=False)


@pytest.fixture
def embedder(small, monkeypatch):
    """An embedder with given vectors."""

    def predict(x, batch_size=None, steps=None, *, prompt=None, **kwargs):
        return np.stack([VECTORS.get(text, np.eye(WIDTH, dtype="float32")[0]) for text in x])

    monkeypatch.setattr(small, "predict", predict)
    return small


class Broken:
    """A cross-encoder that has one score for all pairs."""

    def predict(self, x, batch_size=None):
        return [0.5]


class Judge:
    """A cross-encoder with given scores, as both libraries call it."""

    def predict(self, x, batch_size=None, **kwargs):
        pairs = list(zip(*x, strict=True)) if isinstance(x, tuple) else x
        scores = np.array([JUDGED[tuple(pair)] for pair in pairs], "float32")
        if "convert_to_tensor" in kwargs:
            import torch

            return torch.tensor(scores)
        return scores


class Model:
    """An embedder with given vectors, as sentence-transformers calls it."""

    device = "cpu"

    def encode_query(self, texts, **kwargs):
        return np.stack([VECTORS[text] for text in texts])

    encode_document = encode_query

    def similarity(self, a, b):
        import torch

        return torch.as_tensor(a) @ torch.as_tensor(b).T

    def similarity_pairwise(self, a, b):
        import torch

        return (torch.as_tensor(a) * torch.as_tensor(b)).sum(-1)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_negatives": 2, "range_min": 3, "range_max": 7},
        {"absolute_margin": 0.1, "num_negatives": 4},
        {"relative_margin": 0.05, "range_max": 20},
        {"max_score": 0.3, "min_score": -0.2, "num_negatives": 2},
        {"ranker": True, "relative_margin": 0.1},
        {"ranker": True, "min_score": -0.5, "absolute_margin": 0.2, "range_min": 1},
    ],
    ids=str,
)
def test_negatives_are_those_of_sentence_transformers(embedder, settings):
    util = pytest.importorskip("sentence_transformers.util")
    datasets = pytest.importorskip("datasets")
    judge = Judge() if settings.get("ranker") else None
    settings = {name: value for name, value in settings.items() if name != "ranker"}
    columns = {"query": QUERIES, "positive": POSITIVES}
    peer = util.mine_hard_negatives(
        datasets.Dataset.from_dict(columns),
        Model(),
        corpus=TEXTS,
        cross_encoder=judge,
        output_scores=True,
        verbose=False,
        **settings,
    )
    found = mine_negatives(embedder, QUERIES, POSITIVES, TEXTS, ranker=judge, **settings)
    rows = zip(*found.triplets, found.triplet_scores.tolist(), strict=True)
    wanted = zip(peer["query"], peer["positive"], peer["negative"], peer["scores"], strict=True)
    wanted = {tuple(row): scores for *row, scores in wanted}
    assert len(wanted) > 5
    got = {tuple(row): scores for *row, scores in rows}
    assert got.keys() == wanted.keys()
    for row, scores in wanted.items():
        np.testing.assert_allclose(got[row], scores, atol=1e-6)


def test_an_index_is_searched_as_it_is(embedder):
    index = embedder.index(TEXTS, keep_texts=True)
    found = mine_negatives(embedder, QUERIES, POSITIVES, index, absolute_margin=0.05)
    assert found == mine_negatives(embedder, QUERIES, POSITIVES, TEXTS, absolute_margin=0.05)
    assert found.x[:2] == (QUERIES, POSITIVES) and found.left_out["absolute_margin"] > 0
    twice = embedder.index([*TEXTS, *TEXTS], keep_texts=True)
    found = mine_negatives(embedder, QUERIES, POSITIVES, twice, num_negatives=4)
    assert all(len(row) == len(set(row)) > 1 for row in found.x[2])
    bare = VectorIndex(embedder.predict(TEXTS))
    with pytest.raises(ValueError, match="The index has no texts, and negatives are texts"):
        mine_negatives(embedder, QUERIES, POSITIVES, bare)
    signs = embedder.index(TEXTS, keep_texts=True, precision="binary")
    assert any(mine_negatives(embedder, QUERIES, POSITIVES, signs).x[2])
    with pytest.raises(ValueError, match="'binary' are no cosine similarities"):
        mine_negatives(embedder, QUERIES, POSITIVES, signs, max_score=0.5)
    with pytest.raises(ValueError, match="corpus_prompt='passage', and the index .* prompt None"):
        mine_negatives(embedder, QUERIES, POSITIVES, index, corpus_prompt="passage")


def test_random_negatives_come_of_the_seed(embedder):
    def mine(seed, **more):
        settings = {"num_negatives": 2, "range_max": 12, **more}
        return mine_negatives(
            embedder, QUERIES, POSITIVES, TEXTS, sampling="random", seed=seed, **settings
        )

    assert mine(1) == mine(1) != mine(2)
    all_of_them = mine_negatives(
        embedder, QUERIES, POSITIVES, TEXTS, num_negatives=12, range_max=12
    )
    found = mine(1)
    for few, many, scores in zip(found.x[2], all_of_them.x[2], found.negative_scores, strict=True):
        assert len(few) == 2 and set(few) <= set(many) and scores == sorted(scores)[::-1]


def test_a_query_is_no_negative_of_itself(embedder):
    texts = [*TEXTS, *QUERIES]
    found = mine_negatives(embedder, QUERIES, POSITIVES, texts, num_negatives=5)
    assert all(q not in row for q, row in zip(QUERIES, found.x[2], strict=True))
    assert any(text.startswith("query") for row in found.x[2] for text in row)


def test_mined_rows_are_trained_on(small):
    """Of a real embedder, whose texts are encoded once each; some rows have no negative."""
    (queries, _), (positives, _) = make_reviews(8), make_reviews(8, seed=1)
    embedder = small
    found = mine_negatives(embedder, queries, positives, num_negatives=2, max_score=0.9999)
    embedder.compile("sgd", InBatchNegatives())
    before = embedder.evaluate(found.x, verbose=0)
    history = embedder.fit(found.x, epochs=2, batch_size=8, verbose=0)
    assert np.isfinite(history.history["loss"]).all() and np.isfinite(before)
    embedder.compile("sgd", MarginMSE())
    embedder.fit(found.triplets, found.triplet_scores, batch_size=8, verbose=0)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"num_negatives": 0}, "num_negatives must be an integer of at least 1, got 0"),
        ({"range_min": -1}, "range_min must be an integer of at least 0, got -1"),
        ({"range_min": 5, "range_max": 6}, "num_negatives=3 .* range_min=5 to range_max=6"),
        ({"sampling": "best"}, "sampling must be one of top, random, got 'best'"),
        ({"max_score": "high"}, "max_score must be a finite number, got 'high'"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"ranker": 3, "min_score": 0.0}, "ranker must be a TextRanker, or an obj.*, got an? int"),
        ({"ranker": Judge()}, "A ranker vetoes candidates by its scores, got no limit"),
        (
            {"ranker": Broken(), "min_score": 0.0},
            r"a finite number for each of 307 pairs, got an array of shape \(1,\)",
        ),
        ({"max_score": -2}, r"No query has a negative: .* limits leave out {'max_score': \d+}"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_wrong_arguments(embedder, settings, message):
    with pytest.raises(ValueError, match=message):
        mine_negatives(embedder, QUERIES, POSITIVES, TEXTS, **settings)


def test_wrong_columns(embedder):
    with pytest.raises(ValueError, match="embedder must be a TextEmbedder, got a str. Open one"):
        mine_negatives("folder", QUERIES, POSITIVES)
    with pytest.raises(ValueError, match="got 12 queries, 11 positives"):
        mine_negatives(embedder, QUERIES, POSITIVES[:-1])
    with pytest.raises(ValueError, match="Texts must come as a list of strings, got the string"):
        mine_negatives(embedder, "query", POSITIVES)
