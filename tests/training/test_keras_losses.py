"""Losses of Keras by their name, class, function and object."""

import functools
import inspect

import keras
import numpy as np
import pytest
from tables import everywhere_for

from keras_bert_suite.training import (
    ClassAccuracy,
    ClassCrossentropy,
    LabelwiseLoss,
    MaskedLMLoss,
    OneHotLoss,
    OutputForm,
    is_loss_of_keras,
    read_loss,
    read_metric,
)
from keras_bert_suite.training.keras_forms import name_kind
from keras_bert_suite.training.losses import find_from_logits

CLASSES, LABEL_SETS, NUMBERS = (
    OutputForm(kind, size=3) for kind in ("classes", "label sets", "numbers")
)
TAGS = OutputForm("classes", size=3, are_tokens=True)
PLACES = OutputForm("classes", size=None)

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
        kind = "label sets" if "b" in name[:1].lower() else "classes"
        read = read_loss(loss, OutputForm(kind, from_logits, 3))
        assert isinstance(read, keras.losses.Loss) and find_from_logits(read) is from_logits


def own_loss(y_true, y_pred, from_logits=False):
    return y_pred


def test_other_losses_stay():
    with_logits = functools.partial(own_loss, from_logits=True)
    plain = lambda y_true, y_pred: y_pred  # noqa: E731
    for loss in (plain, with_logits, None):
        assert read_loss(loss, CLASSES) is loss
    huber = keras.losses.Huber()
    assert read_loss(huber, NUMBERS) is huber
    assert read_loss(own_loss, OutputForm("classes", False, 3)) is own_loss


@pytest.mark.parametrize(
    ("loss", "error"),
    [
        (own_loss, "outputs are logits, got the loss own_loss with from_logits=False"),
        (keras.losses.CategoricalCrossentropy(), "got the loss categorical_crossentropy with .*=F"),
        ("crossentropy", "does not say which cross-entropy"),
        ("binary_crosentropy", "binary_crosentropy"),
    ],
)
def test_losses_that_cannot_be_meant(loss, error):
    with pytest.raises(ValueError, match=error):
        read_loss(loss, CLASSES)


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
    arguments = {"from_logits": from_logits}
    if (
        "label_smoothing"
        in inspect.signature(keras.losses.SparseCategoricalCrossentropy).parameters
    ):
        arguments["label_smoothing"] = 0.1  # Since Keras 3.16.
    loss = ClassCrossentropy(**arguments)
    for labels, kind, metric in (
        (ids, "SparseCategoricalCrossentropy", "SparseCategoricalAccuracy"),
        (ids[:, None], "SparseCategoricalCrossentropy", "SparseCategoricalAccuracy"),
        (soft, "CategoricalCrossentropy", "CategoricalAccuracy"),
    ):
        wanted = getattr(keras.losses, kind)(**arguments)(labels, outputs)
        assert float(loss(labels, outputs)) == pytest.approx(float(wanted), rel=1e-6)
        ours, theirs = ClassAccuracy(), getattr(keras.metrics, metric)()
        weights = rng.random(8, "float32")
        assert float(ours(labels, outputs, weights)) == pytest.approx(
            float(theirs(labels, outputs, weights)), rel=1e-6
        )


RNG = np.random.default_rng(1)
IDS, SETS, FIGURES = (
    RNG.integers(0, 3, 6).astype("int32"),
    RNG.integers(0, 2, (6, 3)).astype("float32"),
    RNG.uniform(0.1, 1.0, (6, 3)).astype("float32"),
)
LOGITS = RNG.normal(size=(6, 3)).astype("float32")
ROWS = np.eye(3, dtype="float32")[IDS]
SOFTMAX = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)
SIGMOID = 1 / (1 + np.exp(-LOGITS))
SHAPE, KIND = "must have the shape of the outputs", "is not for"

#: loss -> what Keras' own loss gets for class ids, one-hot rows, sets of labels, and numbers; or
#: the error.
BINARY = (SHAPE, (ROWS, LOGITS), (SETS, LOGITS), (FIGURES, LOGITS))
ONE_HOT = ((ROWS, LOGITS), (ROWS, LOGITS), KIND, KIND)
SHARES = ((ROWS, SOFTMAX), (ROWS, SOFTMAX), KIND, KIND)
OVERLAP = ((ROWS, SOFTMAX), (ROWS, SOFTMAX), (SETS, SIGMOID), KIND)
DISTANCE = (SHAPE, (ROWS, SOFTMAX), (SETS, SIGMOID), (FIGURES, LOGITS))
NOWHERE = (KIND,) * 4
LOSSES = {
    "SparseCategoricalCrossentropy": ((IDS, LOGITS), (IDS, LOGITS), KIND, KIND),
    "CategoricalGeneralizedCrossEntropy": ((IDS, SOFTMAX), (IDS, SOFTMAX), KIND, KIND),
    "CategoricalCrossentropy": ONE_HOT,
    "CategoricalFocalCrossentropy": ONE_HOT,
    "CategoricalHinge": ONE_HOT,
    "KLDivergence": SHARES,
    "Dice": OVERLAP,
    "Tversky": OVERLAP,
    "BinaryCrossentropy": BINARY,
    "BinaryFocalCrossentropy": BINARY,
    "Hinge": BINARY,
    "SquaredHinge": BINARY,
    "MeanSquaredError": DISTANCE,
    "MeanAbsoluteError": DISTANCE,
    "MeanSquaredLogarithmicError": DISTANCE,
    "CosineSimilarity": DISTANCE,
    "Huber": DISTANCE,
    "LogCosh": DISTANCE,
    "Poisson": (*DISTANCE[:3], KIND),
    "MeanAbsolutePercentageError": (*(KIND,) * 3, (FIGURES, LOGITS)),
    "CTC": NOWHERE,
    "Circle": NOWHERE,
}
if hasattr(keras.losses, "SparseCategoricalFocalCrossentropy"):  # Since Keras 3.16.
    LOSSES["SparseCategoricalFocalCrossentropy"] = LOSSES["SparseCategoricalCrossentropy"]
LABELS = ((CLASSES, IDS), (CLASSES, ROWS), (LABEL_SETS, SETS), (NUMBERS, FIGURES))


@pytest.mark.parametrize(
    "name", everywhere_for(LOSSES, "SparseCategoricalCrossentropy", "BinaryFocalCrossentropy")
)
def test_every_loss_of_keras(name):
    """By its class, function and object, and after it was saved, with any number of rows."""
    kind = getattr(keras.losses, name)
    takes_logits = "from_logits" in inspect.signature(kind).parameters
    loss = kind(from_logits=True) if takes_logits else kind()
    functions = [f for f in vars(keras.losses).values() if inspect.isfunction(f)]
    given = [kind, loss, *(f for f in functions if name_kind(f) == name)]
    assert len(given) == 3
    for (form, labels), wanted in zip(LABELS, LOSSES[name], strict=True):
        for num_rows, forms in ((1, given[:1]), (3, given[:1]), (6, given)):
            outputs = LOGITS[:num_rows]
            for one in forms:
                if isinstance(wanted, str):
                    with pytest.raises(ValueError, match=wanted):
                        read_loss(one, form)(labels[:num_rows], outputs)
                    continue
                value = float(loss(*(array[:num_rows] for array in wanted)))
                read = read_loss(one, form)
                assert float(read(labels[:num_rows], outputs)) == pytest.approx(value, rel=1e-5)
                twin = keras.saving.deserialize_keras_object(
                    keras.saving.serialize_keras_object(read)
                )
                again = read_loss(twin, form)
                assert float(again(labels[:num_rows], outputs)) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_probabilities(name):
    """Outputs with an activation are what the losses without `from_logits` take."""
    kind = getattr(keras.losses, name)
    for (form, labels), wanted, outputs in zip(
        LABELS[:3], LOSSES[name], (SOFTMAX, SOFTMAX, SIGMOID), strict=False
    ):
        if isinstance(wanted, str):
            continue
        value = float(kind()(wanted[0], outputs))
        read = read_loss(kind, OutputForm(form.kind, False, 3))
        assert float(read(labels, outputs)) == pytest.approx(value, rel=1e-5)


def test_losses_of_single_labels_and_partial_functions():
    error = keras.losses.MeanSquaredError()
    read = read_loss(LabelwiseLoss(error), LABEL_SETS)
    assert float(read(SETS, LOGITS)) == pytest.approx(float(error(SETS, SIGMOID)), rel=1e-5)
    with pytest.raises(ValueError, match=SHAPE):
        read_loss(LabelwiseLoss(error), CLASSES)(IDS[:3], LOGITS[:3])
    smoothed = functools.partial(keras.losses.categorical_crossentropy, label_smoothing=0.1)
    wanted = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    got = read_loss(smoothed, CLASSES)(IDS, LOGITS)
    assert float(got) == pytest.approx(float(wanted(ROWS, LOGITS)), rel=1e-5)


def focal(y_true, y_pred):
    return keras.ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True) ** 2


class OwnLoss(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return focal(y_true, y_pred)


def mean_of_all(y_true, y_pred):
    return keras.ops.mean(focal(y_true, y_pred))


def mean_of_rows(y_true, y_pred):
    return keras.ops.mean(focal(y_true, y_pred), axis=-1)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("sparse_categorical_crossentropy", marks=pytest.mark.every_backend),
        *("kl_divergence", "categorical_hinge"),
        keras.losses.CategoricalFocalCrossentropy(from_logits=True),
        keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
        OneHotLoss(keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)),
        *(focal, OwnLoss()),
    ],
)
def test_padding_does_not_count_in_losses_of_tokens(loss):
    """The reference is the loss of the tokens that count, as rows of a classifier."""
    weights = np.array([1, 1, 0, 1, 0, 0], "float32")
    kept = weights > 0
    plain = read_loss(loss, CLASSES)
    if not isinstance(plain, keras.losses.Loss):
        plain = OwnLoss()
    wanted = float(plain(IDS[kept], LOGITS[kept]))
    read = read_loss(loss, TAGS)
    for length in (2, 3):
        shape = (6 // length, length)
        got = read(IDS.reshape(shape), LOGITS.reshape(*shape, 3), weights.reshape(shape))
        assert float(got) == pytest.approx(wanted, rel=1e-5)
    assert read_loss(read, TAGS) is read


def test_losses_that_say_how_they_are_summed_stay():
    summed = OwnLoss(reduction="sum")
    assert read_loss(summed, TAGS) is summed
    masked = MaskedLMLoss()
    assert read_loss(masked, TAGS) is masked


@pytest.mark.parametrize(
    ("loss", "form", "error"),
    [
        ("mse", TAGS, "mean_squared_error is not for labels of tokens"),
        ("dice", TAGS, "dice is not for labels of tokens"),
        ("binary_crossentropy", PLACES, "not for labels that are places"),
        ("cosine_similarity", OutputForm("numbers", size=1), "regression with 1 output."),
    ],
)
def test_losses_for_other_labels(loss, form, error):
    with pytest.raises(ValueError, match=error):
        read_loss(loss, form)


def test_losses_and_metrics_of_other_labels_stay():
    loss = keras.losses.MeanSquaredError()
    assert read_loss(loss, OutputForm("others")) is loss
    assert read_metric("accuracy", OutputForm("others")) == "accuracy"


def test_a_loss_of_rows_is_none_of_tokens():
    labels, logits, weights = IDS.reshape(2, 3), LOGITS.reshape(2, 3, 3), np.ones((2, 3))
    got = read_loss(mean_of_all, TAGS)(labels, logits, weights)
    assert float(got) == pytest.approx(float(mean_of_all(labels, logits)), rel=1e-5)
    with pytest.raises(ValueError, match="must return the loss of each prediction"):
        read_loss(mean_of_rows, TAGS)(labels, logits, weights)


def test_what_a_wrapped_loss_is():
    message = "OneHotLoss wraps a loss of the class keras.losses.Loss, got <function own_loss.*Pass"
    with pytest.raises(ValueError, match=message):
        OneHotLoss(own_loss)
