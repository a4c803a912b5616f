import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_suite import MaskedLMLoss
from keras_bert_suite.training import LabelwiseLoss, OneHotLoss, ReplacedTokenLoss, SpanLoss

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 7, (4, 3))
LOGITS = RNG.normal(size=(4, 3, 7)).astype("float32")
WEIGHTS = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]], "float32")


def cross_entropy():
    exponentials = np.exp(LOGITS.astype("float64"))
    chosen = np.take_along_axis(exponentials, LABELS[..., None], axis=-1)[..., 0]
    return -np.log(chosen / exponentials.sum(axis=-1))


@pytest.mark.every_backend
def test_it_is_the_mean_over_what_counts():
    loss = MaskedLMLoss()
    wanted = (WEIGHTS * cross_entropy()).sum() / (WEIGHTS.sum() + 1e-5)
    assert float(loss(LABELS, LOGITS, WEIGHTS)) == pytest.approx(wanted, rel=1e-6)
    assert float(loss(LABELS, LOGITS)) == pytest.approx(cross_entropy().mean(), rel=1e-5)


def test_a_batch_without_predictions_costs_nothing():
    assert float(MaskedLMLoss()(LABELS, LOGITS, np.zeros_like(WEIGHTS))) == 0.0


def test_half_precision_logits_are_summed_in_float32():
    logits = ops.cast(LOGITS * 30, "bfloat16")
    loss = MaskedLMLoss()(LABELS, logits, WEIGHTS)
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    wanted = MaskedLMLoss()(LABELS, ops.cast(logits, "float32"), WEIGHTS)
    assert float(loss) == float(wanted)


@pytest.mark.every_backend
def test_a_label_of_no_probability_costs_what_it_should():
    """Softmax gives 0 in float32, and a logarithm of it would be infinite."""
    logits = np.array([[0.0, 200.0, -50.0], [-300.0, -301.0, 0.0]], "float32")
    loss = MaskedLMLoss()(np.array([0, 1]), logits)
    assert float(loss) == pytest.approx((200.0 + 301.0) / 2, rel=1e-5)


@pytest.mark.every_backend
def test_gradient():
    """Softmax less one-hot, of the jitted step too, under every policy's dtype."""
    tokens, table = keras.Input((3, 5)), keras.layers.Dense(7, name="scores")
    model = keras.Model(tokens, table(tokens))
    x = RNG.normal(size=(4, 3, 5)).astype("float32")
    logits = ops.convert_to_numpy(model(x)).astype("float64")
    before = ops.convert_to_numpy(table.kernel).copy()
    softmax = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    by_logit = (softmax - np.eye(7)[LABELS]) * WEIGHTS[..., None] / (WEIGHTS.sum() + 1e-5)
    wanted = np.einsum("bph,bpv->hv", x, by_logit)
    model.compile(keras.optimizers.SGD(1.0), MaskedLMLoss())
    model.train_on_batch(x, LABELS, WEIGHTS)
    np.testing.assert_allclose(before - ops.convert_to_numpy(table.kernel), wanted, atol=1e-6)


def test_replaced_tokens():
    """Against PyTorch's binary cross-entropy, over the tokens that count."""
    torch = pytest.importorskip("torch")
    labels, logits = (LABELS > 3).astype("float32"), LOGITS[..., 0]
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.tensor(logits), torch.tensor(labels), reduction="none"
    ).numpy()
    wanted = (WEIGHTS * losses).sum() / WEIGHTS.sum()
    assert float(ReplacedTokenLoss()(labels, logits, WEIGHTS)) == pytest.approx(wanted, rel=1e-4)


def test_spans():
    """log(1 + sum_negative exp(s)) + log(1 + sum_positive exp(-s)), the mean over the types."""
    scores = RNG.normal(size=(2, 2, 3, 3))
    spans = np.array([[[0, 1, 1], [1, 2, 1], [-1, -1, -1]], [[2, 2, 0], [0, 0, 1], [0, 2, 1]]])
    is_entity = np.zeros(scores.shape, bool)
    for row, first, last, kind in [
        (0, 0, 1, 1),
        (0, 1, 2, 1),
        (1, 2, 2, 0),
        (1, 0, 0, 1),
        (1, 0, 2, 1),
    ]:
        is_entity[row, kind, first, last] = True
    wanted = np.log(1 + np.where(is_entity, 0, np.exp(scores)).sum((2, 3)))
    wanted += np.log(1 + np.where(is_entity, np.exp(-scores), 0).sum((2, 3)))
    found = ops.convert_to_numpy(SpanLoss(reduction="none")(spans, scores.astype("float32")))
    np.testing.assert_allclose(found, wanted.mean(1), rtol=1e-5)


def test_losses_that_wrap_a_loss_of_keras():
    """Class ids stand for one-hot labels, and each label of a row may have a weight."""
    soft = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
    for number in (4, 1):  # A batch may have a single row.
        ids, logits = LABELS[:number, 0], LOGITS[:number, 0]
        one_hot = np.eye(7, dtype="float32")[ids]
        wanted = float(soft(one_hot, logits))
        for labels in (ids, ids[:, None], one_hot):
            assert float(OneHotLoss(soft)(labels, logits)) == pytest.approx(wanted, rel=1e-6)
    each = keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")
    flags, scores = (LABELS > 3).astype("float32"), LOGITS[..., 0]
    losses = np.array(
        [[float(each(flags[i, j, None], scores[i, j, None])) for j in range(3)] for i in range(4)]
    )
    ours = LabelwiseLoss(keras.losses.BinaryCrossentropy(from_logits=True))
    assert float(ours(flags, scores)) == pytest.approx(losses.mean(), rel=1e-5)
    assert float(ours(flags, scores, WEIGHTS)) == pytest.approx((losses * WEIGHTS).mean(), rel=1e-5)
    rows = np.array([0, 1, 2, 3], "float32")
    wanted = (losses * rows[:, None]).mean()
    assert float(ours(flags, scores, rows)) == pytest.approx(wanted, rel=1e-5)
