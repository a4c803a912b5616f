"""Losses of Keras by their name, class, function and object."""

import functools

import keras
import numpy as np
import pytest

from keras_bert_suite.training import ClassAccuracy, ClassCrossentropy, is_loss_of_keras, read_loss

NAMES = (
    *("binary_crossentropy", "BinaryCrossentropy", "bce"),
    *("categorical_crossentropy", "sparse_categorical_crossentropy"),
    *("binary_focal_crossentropy", "categorical_focal_crossentropy"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("from_logits", [True, False])
def test_a_name_says_what_the_outputs_are(name, from_logits):
    for loss in (name, keras.losses.get(name)):
        if isinstance(loss, keras.losses.Loss):
            loss = type(loss)
        read = read_loss(loss, from_logits)
        assert isinstance(read, keras.losses.Loss) and read.from_logits is from_logits


def own_loss(y_true, y_pred, from_logits=False):
    return y_pred


def test_other_losses_stay():
    with_logits = functools.partial(own_loss, from_logits=True)
    plain = lambda y_true, y_pred: y_pred  # noqa: E731
    for loss in ("mse", keras.losses.huber, keras.losses.Huber(), plain, with_logits, None):
        assert read_loss(loss, True) is loss
    assert read_loss(own_loss, False) is own_loss


@pytest.mark.parametrize(
    ("loss", "error"),
    [
        (own_loss, "outputs are logits, got the loss own_loss with from_logits=False"),
        (keras.losses.BinaryCrossentropy(), "got the loss binary_crossentropy with from_logits=F"),
        ("crossentropy", "does not say which cross-entropy"),
        ("binary_crosentropy", "binary_crosentropy"),
    ],
)
def test_losses_that_cannot_be_meant(loss, error):
    with pytest.raises(ValueError, match=error):
        read_loss(loss, True)


def test_which_losses_are_of_keras():
    for loss in ("mse", "Huber", keras.losses.huber, keras.losses.Huber, keras.losses.Huber()):
        assert is_loss_of_keras(loss)
    for loss in (None, own_loss, ClassCrossentropy()):
        assert not is_loss_of_keras(loss)


@pytest.mark.parametrize("from_logits", [True, False])
def test_class_ids_and_soft_labels(from_logits):
    """The references are the losses and metrics of Keras for either."""
    rng = np.random.default_rng(0)
    outputs = rng.random((8, 3), "float32")
    outputs /= outputs.sum(axis=1, keepdims=True)
    soft = rng.random((8, 3), "float32")
    ids = rng.integers(0, 3, 8)
    loss = ClassCrossentropy(from_logits=from_logits)
    for labels, kind, metric in (
        (ids, "SparseCategoricalCrossentropy", "SparseCategoricalAccuracy"),
        (ids[:, None], "SparseCategoricalCrossentropy", "SparseCategoricalAccuracy"),
        (soft, "CategoricalCrossentropy", "CategoricalAccuracy"),
    ):
        wanted = getattr(keras.losses, kind)(from_logits=from_logits)(labels, outputs)
        assert float(loss(labels, outputs)) == pytest.approx(float(wanted), rel=1e-6)
        ours, theirs = ClassAccuracy(), getattr(keras.metrics, metric)()
        weights = rng.random(8, "float32")
        assert float(ours(labels, outputs, weights)) == pytest.approx(
            float(theirs(labels, outputs, weights)), rel=1e-6
        )
