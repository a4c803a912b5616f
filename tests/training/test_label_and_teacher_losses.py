"""Losses that make triplets of labels, learn a teacher's scores, or train cut vectors."""

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import to_numpy

from keras_bert_suite import (
    BatchAllTriplet,
    BatchHardTriplet,
    CoSENT,
    CosineRegression,
    DistilledScores,
    InBatchNegatives,
    MarginMSE,
    Matryoshka,
    VectorRegression,
)

pytestmark = pytest.mark.every_backend

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(8, 4, 6)).astype("float32")
SINGLE = VECTORS[:, :1]
LABELS = np.array([0, 1, 0, 2, 1, 2, 0, 1], "int32")
TEACHER = RNG.normal(scale=3, size=(8, 3)).astype("float32")
TEACHER_VECTORS = RNG.normal(size=(8, 6)).astype("float32")
NUMBERS = np.arange(32, dtype="int32").reshape(8, 4)


def differentiate(loss, y, vectors):
    """(value, gradient of the vectors) of a loss."""
    if keras.config.backend() == "jax":
        import jax

        value, gradient = jax.value_and_grad(lambda x: loss(y, x))(vectors)
    elif keras.config.backend() == "tensorflow":
        import tensorflow as tf

        tensor = tf.constant(vectors)
        with tf.GradientTape() as tape:
            tape.watch(tensor)
            value = loss(y, tensor)
        gradient = tape.gradient(value, tensor)
    else:
        tensor = ops.convert_to_tensor(vectors).requires_grad_()
        value = loss(ops.convert_to_tensor(y), tensor)
        value.backward()
        gradient = tensor.grad
    return float(to_numpy(value)), to_numpy(gradient)


def cosine(losses):
    return losses.BatchHardTripletLossDistanceFunction.cosine_distance


PEERS = [
    (BatchAllTriplet(0.5), LABELS, 1, lambda m: m.BatchAllTripletLoss(None, cosine(m), 0.5)),
    (
        BatchAllTriplet(2.0, "euclidean"),
        LABELS,
        1,
        lambda m: m.BatchAllTripletLoss(None, margin=2.0),
    ),
    (BatchHardTriplet(0.5), LABELS, 1, lambda m: m.BatchHardTripletLoss(None, cosine(m), 0.5)),
    (
        BatchHardTriplet(5.0, "euclidean"),
        LABELS,
        1,
        lambda m: m.BatchHardTripletLoss(None, margin=5.0),
    ),
    (
        BatchHardTriplet("soft"),
        LABELS,
        1,
        lambda m: m.BatchHardSoftMarginTripletLoss(None, cosine(m)),
    ),
    (VectorRegression(), TEACHER_VECTORS, 1, lambda m: m.MSELoss(None)),
    (VectorRegression(), TEACHER_VECTORS, 3, lambda m: m.MSELoss(None)),
    (MarginMSE(), TEACHER, 4, lambda m: m.MarginMSELoss(None)),
    (MarginMSE(), TEACHER[:, :2], 3, lambda m: m.MarginMSELoss(None)),
    (DistilledScores(), TEACHER, 4, lambda m: m.DistillKLDivLoss(None)),
    (
        DistilledScores(2.0, 0.5),
        TEACHER,
        4,
        lambda m: m.DistillKLDivLoss(None, student_temperature=2.0, teacher_temperature=0.5),
    ),
    (
        DistilledScores(0.5, similarity="cosine"),
        TEACHER,
        4,
        lambda m: m.DistillKLDivLoss(None, cosine_of_pairs(), temperature=0.5),
    ),
]


def cosine_of_pairs():
    from sentence_transformers.util import pairwise_cos_sim

    return pairwise_cos_sim


@pytest.mark.parametrize("loss, y, num_texts, build", PEERS, ids=range(len(PEERS)))
def test_values_and_gradients_are_those_of_sentence_transformers(loss, y, num_texts, build):
    peers = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    torch = pytest.importorskip("torch")
    columns = [
        torch.tensor(VECTORS[:, i].copy(), requires_grad=True, device="cpu")
        for i in range(num_texts)
    ]
    targets = torch.tensor(y)
    if isinstance(loss, VectorRegression):
        targets = [targets] * num_texts
    wanted = build(peers).compute_loss_from_embeddings(columns, targets)
    wanted.backward()
    gradients = np.stack([column.grad.numpy() for column in columns], axis=1)
    value, found = differentiate(loss, y, VECTORS[:, :num_texts])
    assert value == pytest.approx(float(wanted.detach()), rel=2e-6, abs=1e-6)
    np.testing.assert_allclose(found, gradients, atol=1e-6, rtol=1e-5)


def test_cut_vectors_are_those_of_sentence_transformers():
    peers = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    torch = pytest.importorskip("torch")
    texts = [torch.tensor(VECTORS[:, i].copy(), requires_grad=True) for i in range(2)]

    class Given(torch.nn.Module):
        """Stands for a model: the features of a text are its vectors."""

        def forward(self, features):
            return {"sentence_embedding": features["vectors"]}

        def get_embedding_dimension(self):
            return 6

    model = Given()
    inner = peers.MultipleNegativesRankingLoss(model)
    wanted = peers.MatryoshkaLoss(model, inner, [6, 3, 2], [1, 0.5, 0.25])(
        [{"vectors": text} for text in texts], None
    )
    wanted.backward()
    gradients = np.stack([text.grad.numpy() for text in texts], axis=1)
    loss = Matryoshka(InBatchNegatives(), [3, 6, 2], [0.5, 1, 0.25])
    value, found = differentiate(loss, NUMBERS[:, :2], VECTORS[:, :2])
    assert value == pytest.approx(float(wanted.detach()), rel=2e-6)
    np.testing.assert_allclose(found, gradients, atol=1e-6, rtol=1e-5)


def test_losses_are_those_of_the_papers():
    """Transcribed triplet by triplet, so that they are also seen without the other library."""
    unit = SINGLE[:, 0] / np.linalg.norm(SINGLE[:, 0], axis=-1, keepdims=True)
    far = 1 - unit @ unit.T
    triplets, hard = [], []
    for a in range(8):
        positives = [p for p in range(8) if LABELS[p] == LABELS[a] and p != a]
        negatives = [n for n in range(8) if LABELS[n] != LABELS[a]]
        triplets += [far[a, p] - far[a, n] + 0.5 for p in positives for n in negatives]
        hard.append(max(far[a, positives]) - min(far[a, negatives]))
    active = [loss for loss in triplets if loss > 0]
    assert 0 < len(active) < len(triplets)
    found = to_numpy(BatchAllTriplet(0.5)(LABELS, SINGLE))
    assert found == pytest.approx(np.mean(active), rel=2e-6)
    found = to_numpy(BatchHardTriplet("soft").call(LABELS, SINGLE))
    np.testing.assert_allclose(found, np.log1p(np.exp(hard)), rtol=2e-6)
    scores = np.einsum("bh,bsh->bs", VECTORS[:, 0], VECTORS[:, 1:])
    wanted = ((scores[:, :1] - scores[:, 1:] - TEACHER[:, :1] + TEACHER[:, 1:]) ** 2).mean(1)
    np.testing.assert_allclose(to_numpy(MarginMSE().call(TEACHER, VECTORS)), wanted, rtol=1e-5)


def test_rows_without_a_positive_or_a_negative_teach_nothing():
    labels = np.array([0, 0, 1, 2, 3, 4, 5, 6], "int32")
    losses = to_numpy(BatchHardTriplet(3.0).call(labels, SINGLE))
    assert (losses[:2] > 0).all() and not losses[2:].any()
    for loss in (BatchHardTriplet(3.0), BatchAllTriplet(3.0), BatchHardTriplet("soft")):
        for same in (np.zeros(8, "int32"), np.arange(8, dtype="int32")):
            value, gradient = differentiate(loss, same, SINGLE)
            assert value == 0 and not gradient.any()


def test_a_weight_is_that_of_an_anchor():
    weights = np.array([1, 1, 0, 1, 1, 1, 1, 1], "float32")
    each = to_numpy(BatchHardTriplet().call(LABELS, SINGLE))
    found = to_numpy(BatchHardTriplet()(LABELS, SINGLE, weights))
    assert found == pytest.approx((each * weights).mean(), rel=1e-5)
    parts = []
    for row in range(8):
        one = np.eye(8, dtype="float32")[row]
        parts.append(float(to_numpy(BatchAllTriplet()(LABELS, SINGLE, one))))
    assert to_numpy(BatchAllTriplet()(LABELS, SINGLE)) == pytest.approx(sum(parts), rel=1e-5)


def test_equal_texts_have_a_gradient():
    vectors = np.repeat(SINGLE[:1], 8, axis=0)
    for loss in (BatchAllTriplet(1.0, "euclidean"), BatchHardTriplet(1.0, "euclidean")):
        value, gradient = differentiate(loss, LABELS, vectors)
        assert value == pytest.approx(1.0, abs=1e-2) and np.isfinite(gradient).all()


def test_wrong_arguments():
    with pytest.raises(ValueError, match="margin must be a number above 0, got -1"):
        BatchAllTriplet(margin=-1)
    with pytest.raises(ValueError, match="margin must be a number above 0, got 'hard'"):
        BatchHardTriplet(margin="hard")
    with pytest.raises(ValueError, match="rows_per_label must be an integer of at least 2, got 1"):
        BatchHardTriplet(rows_per_label=1)
    with pytest.raises(ValueError, match="similarity must be one of dot, cosine, got 'l2'"):
        MarginMSE("l2")
    with pytest.raises(ValueError, match="teacher_temperature must be a number above 0, got 0"):
        DistilledScores(teacher_temperature=0)
    with pytest.raises(ValueError, match=r"InBatchNegatives\(\), got 'mse'"):
        Matryoshka("mse", [4])
    with pytest.raises(ValueError, match="VectorRegression compares them with whole .* a PCA"):
        Matryoshka(VectorRegression(), [4])
    for cls in (BatchAllTriplet, BatchHardTriplet):
        with pytest.raises(ValueError, match="distance must be one of cosine, euclidean, got 'l2'"):
            cls(distance="l2")
    with pytest.raises(ValueError, match=r"must be different ints, at least one, got \[4, 4\]"):
        Matryoshka(CoSENT(), [4, 4])
    with pytest.raises(ValueError, match="dimensions must be a list of integers, got 8. Put a"):
        Matryoshka(CoSENT(), 8)
    with pytest.raises(ValueError, match="weights must be a list of numbers above 0, got 2. Put"):
        Matryoshka(CoSENT(), [8], 2)
    with pytest.raises(ValueError, match="a weight for each of 2 dimensions, got 1"):
        Matryoshka(CoSENT(), [4, 2], [1.0])
    with pytest.raises(ValueError, match="takes rows of at least 3 texts, got rows of 2"):
        MarginMSE().check_rows(2, True)
    with pytest.raises(ValueError, match="takes rows with labels"):
        BatchAllTriplet().check_rows(1, False)
    with pytest.raises(ValueError, match=r"got 5.0 at row 1.*dividing them by 5"):
        Matryoshka(CosineRegression(), [4]).check_scores(np.array([0.5, 5.0], "float32"))
    with pytest.raises(ValueError, match="first 8 numbers .* this embedder have 6"):
        Matryoshka(CoSENT(), [8]).check_width(6)
