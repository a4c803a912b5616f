import numpy as np
import pytest
from peer_weights import to_numpy

from keras_bert_suite import CoSENT, CosineRegression, InBatchNegatives, Triplet

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(6, 3, 4)).astype("float32")
SCORES = np.array([0.0, 0.4, 0.4, 1.0, -0.5, 0.9], "float32")
NUMBERS = np.arange(18, dtype="int32").reshape(6, 3)


def measure(loss, y, vectors, weights=None):
    return float(to_numpy(loss(y, vectors, weights)))


@pytest.mark.parametrize(
    "loss, y, num_texts, build",
    [
        (
            InBatchNegatives(0.1),
            NUMBERS[:, :2],
            2,
            lambda losses: losses.MultipleNegativesRankingLoss(None, scale=10.0),
        ),
        (InBatchNegatives(), NUMBERS, 3, lambda losses: losses.MultipleNegativesRankingLoss(None)),
        (CosineRegression(), SCORES, 2, lambda losses: losses.CosineSimilarityLoss(None)),
        (CoSENT(), SCORES, 2, lambda losses: losses.CoSENTLoss(None)),
        (
            Triplet(0.5),
            NUMBERS,
            3,
            lambda losses: losses.TripletLoss(
                None, losses.TripletDistanceMetric.COSINE, triplet_margin=0.5
            ),
        ),
        (
            Triplet(2.0, distance="euclidean"),
            NUMBERS,
            3,
            lambda losses: losses.TripletLoss(None, triplet_margin=2.0),
        ),
    ],
)
def test_losses_are_those_of_sentence_transformers(loss, y, num_texts, build):
    losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    torch = pytest.importorskip("torch")
    vectors = VECTORS[:, :num_texts]
    columns = [torch.tensor(vectors[:, i]) for i in range(num_texts)]
    wanted = build(losses).compute_loss_from_embeddings(columns, torch.tensor(SCORES))
    assert measure(loss, y, vectors) == pytest.approx(float(wanted), rel=1e-5)


def test_losses_are_those_of_the_papers():
    """Transcribed, so that they are also seen where sentence-transformers is not installed."""
    unit = VECTORS / np.linalg.norm(VECTORS, axis=-1, keepdims=True)
    anchors, positives, negatives = unit[:, 0], unit[:, 1], unit[:, 2]
    cosines, far = (anchors * positives).sum(-1), (anchors * negatives).sum(-1)
    logits = anchors @ np.concatenate([positives, negatives]).T / 0.1
    wanted = (np.log(np.exp(logits).sum(1)) - np.diag(logits)).mean()
    assert measure(InBatchNegatives(0.1), NUMBERS, VECTORS) == pytest.approx(wanted, rel=1e-5)
    wanted = ((cosines - SCORES) ** 2).mean()
    pairs = VECTORS[:, :2]
    assert measure(CosineRegression(), SCORES, pairs) == pytest.approx(wanted, rel=1e-5)
    terms = np.exp(20 * (cosines[None, :] - cosines[:, None]))
    wanted = np.log(1 + terms[SCORES[:, None] > SCORES[None, :]].sum())
    assert measure(CoSENT(), SCORES, pairs) == pytest.approx(wanted, rel=1e-5)
    wanted = np.maximum(far - cosines + 0.5, 0).mean()
    assert measure(Triplet(0.5), NUMBERS, VECTORS) == pytest.approx(wanted, rel=1e-5)
    near, far = (np.linalg.norm(VECTORS[:, 0] - VECTORS[:, i], axis=-1) for i in (1, 2))
    wanted = np.maximum(near - far + 2.0, 0).mean()
    found = measure(Triplet(2.0, distance="euclidean"), NUMBERS, VECTORS)
    assert found == pytest.approx(wanted, rel=1e-5)


def test_equal_texts_are_no_negatives():
    """Row 2 has the positive of row 0, and row 3 has the anchor of row 1 as its positive."""
    numbers = NUMBERS[:, :2].copy()
    numbers[2, 1], numbers[3, 1] = numbers[0, 1], numbers[1, 0]
    unit = VECTORS[:, :2] / np.linalg.norm(VECTORS[:, :2], axis=-1, keepdims=True)
    logits = unit[:, 0] @ unit[:, 1].T  # So small that each of them counts.
    logits[0, 2] = logits[2, 0] = logits[1, 3] = -np.inf
    wanted = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    got = to_numpy(InBatchNegatives(1.0).call(numbers, VECTORS[:, :2]))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_rows_with_fewer_negatives():
    """The places with -1 are no candidates of any row."""
    numbers = NUMBERS.copy()
    numbers[[1, 4], 2] = -1
    unit = VECTORS / np.linalg.norm(VECTORS, axis=-1, keepdims=True)
    candidates = np.concatenate([unit[:, 1], unit[[0, 2, 3, 5], 2]])
    logits = unit[:, 0] @ candidates.T
    wanted = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    got = to_numpy(InBatchNegatives(1.0).call(numbers, VECTORS))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("num_texts", [2, 3])
def test_positives_of_an_equal_anchor_are_no_negatives(num_texts):
    """Rows 0 and 2 have the same anchor. Their hard negatives stay negatives for both."""
    numbers, vectors = NUMBERS[:, :num_texts].copy(), VECTORS[:, :num_texts].copy()
    numbers[2, 0], vectors[2, 0] = numbers[0, 0], vectors[0, 0]
    unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    logits = unit[:, 0] @ np.concatenate([unit[:, i] for i in range(1, num_texts)]).T
    own = np.diag(logits).copy()
    logits[0, 2] = logits[2, 0] = -np.inf
    wanted = np.log(np.exp(logits).sum(axis=1)) - own
    got = to_numpy(InBatchNegatives(1.0).call(numbers, vectors))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize("loss", [CoSENT(), InBatchNegatives(), CosineRegression()])
def test_a_weight_of_zero_leaves_a_row_out(loss):
    y = SCORES if loss.takes_scores else NUMBERS[:, :2]
    vectors = VECTORS[:, :2]
    weights = np.array([1, 1, 1, 1, 1, 0], "float32")
    got = measure(loss, y, vectors, weights)
    if isinstance(loss, CoSENT):
        assert got == pytest.approx(measure(loss, y[:-1], vectors[:-1]), rel=1e-5)
    else:  # The row is still a negative of the others.
        each = to_numpy(loss.call(y, vectors))
        assert got == pytest.approx(each[:-1].sum() / 6, rel=1e-5)


def test_a_weight_of_two_is_a_second_copy():
    vectors, weights = VECTORS[:, :2], np.array([2, 1, 1, 1, 1, 1], "float32")
    wanted = measure(CoSENT(), np.append(SCORES, SCORES[0]), np.append(vectors, vectors[:1], 0))
    assert measure(CoSENT(), SCORES, vectors, weights) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    "loss, num_texts, has_scores, message",
    [
        (CoSENT(), 2, False, "takes rows with scores"),
        (CosineRegression(), 3, True, "takes rows of 2 texts, got rows of 3"),
        (Triplet(), 2, False, "takes rows of 3 texts, got rows of 2"),
        (InBatchNegatives(), 2, True, "takes rows without scores"),
    ],
)
def test_a_loss_says_which_rows_it_takes(loss, num_texts, has_scores, message):
    with pytest.raises(ValueError, match=message):
        loss.check_rows(num_texts, has_scores)


@pytest.mark.backend("torch")
def test_equal_texts_have_a_gradient():
    """The square root of their distance has none at 0."""
    torch = pytest.importorskip("torch")
    vectors = torch.tensor(VECTORS)
    vectors[:, 1] = vectors[:, 0]
    vectors.requires_grad_()
    loss = Triplet(100.0, distance="euclidean")
    loss(NUMBERS, vectors).backward()
    assert torch.isfinite(vectors.grad).all() and vectors.grad.abs().max() > 0


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"got 5.0 at row 1.*dividing them by 5"):
        CosineRegression().check_scores(np.array([0.5, 5.0], "float32"))
    with pytest.raises(ValueError, match="one of cosine, euclidean, got 'l2'"):
        Triplet(distance="l2")
    for make in (lambda: InBatchNegatives(temperature=0), lambda: CoSENT(scale=-20)):
        with pytest.raises(ValueError, match="must be a number above 0, got (0|-20)"):
            make()
    for margin in (float("nan"), float("inf"), "a", None):
        with pytest.raises(ValueError, match="margin must be a finite number, got "):
            Triplet(margin)
