import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_suite import MaskedLMLoss

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
