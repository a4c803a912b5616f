import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from keras_bert_suite.heads.vectors.scores import score_rankings


def test_a_literal_example():
    rankings = [["b", "a", "c"], ["d", "e", "f"], ["g", "h", "i"]]
    scores = score_rankings(rankings, [{"a"}, {"d", "f", "x"}, ["z"]], top_k=(1, 3))
    assert scores["mrr"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert scores["recall@1"] == pytest.approx((0 + 1 / 3 + 0) / 3)
    assert scores["recall@3"] == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_ndcg_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    gains = rng.integers(0, 4, size=(20, 12))
    gains[:, 0] = 1
    order = np.array([rng.permutation(12) for _ in range(20)])
    relevant = [dict(enumerate(map(int, row))) for row in gains]
    got = score_rankings(order.tolist(), relevant, top_k=(3, 12))
    strengths = -np.argsort(order, axis=1).astype(float)
    for k in (3, 12):
        assert got[f"ndcg@{k}"] == pytest.approx(ndcg_score(gains, strengths, k=k))


def test_scores_are_those_of_sentence_transformers():
    evaluation = pytest.importorskip("sentence_transformers.sentence_transformer.evaluation")
    rng = np.random.default_rng(1)
    rankings = [rng.permutation(30)[:10].tolist() for _ in range(8)]
    relevant = {str(i): {str(d) for d in rng.permutation(30)[:3]} for i in range(8)}
    evaluator = evaluation.InformationRetrievalEvaluator(
        {key: key for key in relevant}, {str(d): str(d) for d in range(30)}, relevant
    )
    results = [
        [{"corpus_id": str(d), "score": -place} for place, d in enumerate(row)] for row in rankings
    ]
    theirs = evaluator.compute_metrics(results)
    ours = score_rankings([list(map(str, row)) for row in rankings], list(relevant.values()))
    assert ours["mrr"] == pytest.approx(theirs["mrr@k"][10])
    assert ours["recall@5"] == pytest.approx(theirs["recall@k"][5])
    assert ours["ndcg@10"] == pytest.approx(theirs["ndcg@k"][10])


def test_queries_without_an_answer():
    with pytest.raises(ValueError, match="Query 1 has no relevant document"):
        score_rankings([[1], [2]], [[1], {2: 0}])
    with pytest.raises(ValueError, match="ranking of query 1 has a document twice: .2, 2."):
        score_rankings([[1], [2, 2]], [[1], [2]])
