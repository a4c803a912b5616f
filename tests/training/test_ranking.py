"""The losses and the metric of lists, beside transcriptions and scikit-learn."""

import math

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from sklearn.metrics import log_loss, ndcg_score

from keras_bert_suite.training import NDCG, RankingLoss

#: Graded lists of 4, 3 and 2 candidates. The last one has no relevant candidate.
RELEVANCE = np.array([[0, 2, 1, 0], [1, 0, 0, -1], [0, 0, -1, -1]], "float32")
SCORES = np.array([[0.3, -1.0, 2.0, 0.1], [1.5, 0.2, -0.4, 90.0], [1.0, 2.0, 70, -80]], "float32")
LISTS = [(RELEVANCE[0], SCORES[0]), (RELEVANCE[1, :3], SCORES[1, :3]), ([0, 0], [1.0, 2.0])]


def find_listwise(wanted, scores):
    """Bruch et al., 2019, equation 3."""
    total = sum(math.exp(s) for s in scores)
    return -sum(
        w / sum(wanted) * math.log(math.exp(s) / total) for w, s in zip(wanted, scores, strict=True)
    )


def find_pairwise(wanted, scores):
    """Burges et al., 2005, equation 3, with a target probability of 1."""
    pairs = [
        math.log(1 + math.exp(low - high))
        for y, high in zip(wanted, scores, strict=True)
        for z, low in zip(wanted, scores, strict=True)
        if y > z
    ]
    return sum(pairs) / len(pairs)


def find_pointwise(wanted, scores):
    shares = 1 / (1 + np.exp(-np.array(scores, "float64")))
    return log_loss(np.array(wanted) > 0, shares, labels=[False, True])


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("kind", "find", "lists"),
    [
        ("listwise", find_listwise, LISTS[:2]),
        ("pairwise", find_pairwise, LISTS[:2]),
        ("pointwise", find_pointwise, LISTS),
    ],
)
def test_losses(kind, find, lists):
    wanted = [find(*row) for row in lists]
    loss = RankingLoss(kind)
    assert float(loss(RELEVANCE, SCORES)) == pytest.approx(np.mean(wanted), rel=1e-4)
    weights = np.array([1.0, 3.0, 2.0], "float32")
    mean = np.average(wanted, weights=weights[: len(wanted)])
    assert float(loss(RELEVANCE, SCORES, weights)) == pytest.approx(mean, rel=1e-4)


def test_nothing_to_learn_is_a_loss_of_zero():
    for kind in ("listwise", "pairwise"):
        assert float(RankingLoss(kind)(RELEVANCE[2:], SCORES[2:])) == 0
    with pytest.raises(ValueError, match="kind must be one of listwise, .*got 'lists'"):
        RankingLoss("lists")


@pytest.mark.every_backend
@pytest.mark.parametrize("top_k", [1, 3, 10])
def test_ndcg_is_that_of_scikit_learn(top_k):
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 40)
    relevance = np.full((40, 8), -1, "float32")
    scores = rng.normal(size=(40, 8)).astype("float32")
    wanted = []
    for row, size in enumerate(sizes):
        relevance[row, :size] = rng.integers(0, 4, size)
        if relevance[row].max() > 0:
            shared = (relevance[row : row + 1, :size], scores[row : row + 1, :size])
            wanted.append(ndcg_score(*shared, k=top_k))
    metric = NDCG(top_k)
    for rows in (slice(0, 25), slice(25, 40)):
        metric.update_state(relevance[rows], scores[rows])
    assert float(metric.result()) == pytest.approx(np.mean(wanted), abs=1e-5)


def test_gradients_of_places_without_a_candidate():
    """They are zero, and numbers, under every kind."""
    torch = pytest.importorskip("torch")
    if keras.config.backend() != "torch":
        pytest.skip("gradients are those of PyTorch here")
    for kind in ("listwise", "pairwise", "pointwise"):
        scores = torch.tensor(SCORES, requires_grad=True)
        RankingLoss(kind)(RELEVANCE, scores).backward()
        gradient = to_numpy(scores.grad)
        assert np.isfinite(gradient).all() and (gradient[RELEVANCE < 0] == 0).all()
        assert np.abs(gradient[0]).max() > 1e-3


def test_weights_may_be_a_column():
    """As Keras takes them; products of all rows with all weights would hide them."""
    weights = np.array([1, 3, 2], "float32")
    for make in (RankingLoss, NDCG):
        found = (make()(RELEVANCE, SCORES, w) for w in (weights, weights[:, None]))
        np.testing.assert_allclose(*map(to_numpy, found))
