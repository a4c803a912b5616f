"""Metrics of Keras on the labels and outputs of tasks, beside scikit-learn and NumPy."""

import re

import keras
import numpy as np
import pytest

from keras_bert_suite.training import LabelSetF1, MacroF1, OutputForm, read_metric

sklearn = pytest.importorskip("sklearn.metrics")
RNG = np.random.default_rng(0)
N = 60


def softmax(x):
    shares = np.exp(x - x.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def draw(*shape):
    return RNG.normal(scale=2, size=shape).astype("float32")


class Three:
    """Class ids of three classes; `p` are probabilities, `best` the answers."""

    form = OutputForm("classes", size=3)
    labels, logits = RNG.integers(0, 3, N).astype("int32"), draw(N, 3)
    p = softmax(logits)
    best = p.argmax(axis=-1)
    rows = np.eye(3)[labels]
    others = np.where(rows > 0, -np.inf, logits).max(axis=-1)
    metrics = {
        "accuracy": sklearn.accuracy_score(labels, best),
        "sparse_categorical_accuracy": sklearn.accuracy_score(labels, best),
        "CategoricalAccuracy": sklearn.accuracy_score(labels, best),
        keras.metrics.Accuracy: sklearn.accuracy_score(labels, best),
        keras.metrics.categorical_accuracy: sklearn.accuracy_score(labels, best),
        keras.metrics.SparseTopKCategoricalAccuracy(k=2): (
            sklearn.top_k_accuracy_score(labels, p, k=2)
        ),
        keras.metrics.TopKCategoricalAccuracy(k=2): sklearn.top_k_accuracy_score(labels, p, k=2),
        "sparse_categorical_crossentropy": sklearn.log_loss(labels, p),
        "CategoricalCrossentropy": sklearn.log_loss(labels, p),
        keras.metrics.CategoricalCrossentropy(from_logits=True): sklearn.log_loss(labels, p),
        keras.metrics.SparseCategoricalCrossentropy(from_logits=True): sklearn.log_loss(labels, p),
        "KLDivergence": sklearn.log_loss(labels, p),
        "poisson": np.mean(p - rows * np.log(p)),
        keras.metrics.MeanSquaredError: np.mean((rows - p) ** 2),
        "CategoricalHinge": np.mean(
            np.maximum(0, 1 + np.maximum(others, 0) - (logits * rows).sum(axis=-1))
        ),
        keras.metrics.F1Score(average="macro"): sklearn.f1_score(labels, best, average="macro"),
        keras.metrics.FBetaScore(average="weighted", beta=2.0): (
            sklearn.fbeta_score(labels, best, beta=2, average="weighted")
        ),
        MacroF1: sklearn.f1_score(labels, best, average="macro"),
        keras.metrics.Precision(class_id=1): sklearn.precision_score(labels == 1, p[:, 1] > 0.5),
        keras.metrics.Recall(thresholds=0.3): (sklearn.recall_score(rows.ravel(), p.ravel() > 0.3)),
        keras.metrics.Precision(top_k=1): sklearn.accuracy_score(labels, best),
        keras.metrics.AUC(num_thresholds=500): sklearn.roc_auc_score(rows.ravel(), p.ravel()),
        keras.metrics.AUC(num_thresholds=500, multi_label=True): (
            sklearn.roc_auc_score(rows, p, average="macro")
        ),
        keras.metrics.MeanIoU(num_classes=3): (
            sklearn.jaccard_score(labels, best, average="macro")
        ),
        keras.metrics.OneHotIoU(num_classes=3, target_class_ids=[2]): (
            sklearn.jaccard_score(labels == 2, best == 2)
        ),
    }


class Two:
    """Class ids of two classes. Binary metrics are about the second."""

    form = OutputForm("classes", size=2)
    labels, logits = RNG.integers(0, 2, N).astype("int32"), draw(N, 2)
    p = softmax(logits)
    found = p[:, 1] > 0.5
    lead = logits[:, 1] - logits[:, 0]
    metrics = {
        "acc": sklearn.accuracy_score(labels, found),
        "binary_accuracy": sklearn.accuracy_score(labels, found),
        "Precision": sklearn.precision_score(labels, found),
        "Recall": sklearn.recall_score(labels, found),
        keras.metrics.Recall(class_id=0): sklearn.recall_score(labels == 0, ~found),
        "FalsePositives": np.sum(found & (labels == 0)),
        keras.metrics.AUC(num_thresholds=500): sklearn.roc_auc_score(labels, p[:, 1]),
        keras.metrics.AUC(num_thresholds=500, from_logits=True): (
            sklearn.roc_auc_score(labels, p[:, 1])
        ),
        "BinaryCrossentropy": sklearn.log_loss(labels, p),
        keras.metrics.BinaryCrossentropy(from_logits=True): sklearn.log_loss(labels, p),
        "hinge": sklearn.hinge_loss(labels * 2 - 1, lead),
        keras.metrics.BinaryIoU(target_class_ids=[1]): sklearn.jaccard_score(labels, found),
        MacroF1: sklearn.f1_score(labels, found, average="macro"),
    }


class Sets:
    """Sets of three labels, `score`'s threshold 0.5."""

    form = OutputForm("label sets", size=3)
    labels, logits = RNG.integers(0, 2, (N, 3)).astype("float32"), draw(N, 3)
    p = sigmoid(logits)
    found = p > 0.5
    metrics = {
        "accuracy": sklearn.accuracy_score(labels, found),
        "binary_accuracy": np.mean(labels == found),
        keras.metrics.Accuracy: np.mean(labels == found),
        "Precision": sklearn.precision_score(labels, found, average="micro"),
        "Recall": sklearn.recall_score(labels, found, average="micro"),
        keras.metrics.Precision(class_id=2): (sklearn.precision_score(labels[:, 2], found[:, 2])),
        keras.metrics.AUC(num_thresholds=500): sklearn.roc_auc_score(labels.ravel(), p.ravel()),
        keras.metrics.AUC(num_thresholds=500, multi_label=True): sklearn.roc_auc_score(labels, p),
        keras.metrics.F1Score(average="macro"): sklearn.f1_score(labels, found, average="macro"),
        keras.metrics.F1Score(average="micro", threshold=0.3): (
            sklearn.f1_score(labels, p > 0.3, average="micro")
        ),
        "f1_score": sklearn.f1_score(labels, found, average="macro"),
        keras.metrics.F1Score: sklearn.f1_score(labels, found, average="macro"),
        keras.metrics.F1Score(name="each"): sklearn.f1_score(labels, found, average=None),
        MacroF1: sklearn.f1_score(labels, found, average="macro"),
        "BinaryCrossentropy": sklearn.log_loss(labels.ravel(), p.ravel()),
        "mean_absolute_error": np.mean(np.abs(labels - p)),
        "poisson": np.mean(p - labels * np.log(p)),
    }


class Figures:
    """Two numbers a row."""

    form = OutputForm("numbers", size=2)
    labels, logits = draw(N, 2), draw(N, 2)
    metrics = {
        "mse": sklearn.mean_squared_error(labels, logits),
        "mae": sklearn.mean_absolute_error(labels, logits),
        keras.metrics.RootMeanSquaredError: np.sqrt(sklearn.mean_squared_error(labels, logits)),
        keras.metrics.R2Score: sklearn.r2_score(labels, logits),
        "MAPE": 100 * np.mean(np.abs(labels - logits) / np.abs(labels)),
    }


def name_metric(metric):
    """An id that is the same in each process that shares the tests."""
    return metric if isinstance(metric, str) else getattr(metric, "__name__", None) or metric.name


KINDS = (Three, Two, Sets, Figures)
#: What is not the mean of a loss: a matrix of classes, and counts at one threshold and at many.
EVERYWHERE = re.compile("Two (MacroF1|Precision|acc|auc.*|hinge)")


def list_cases():
    for kind in KINDS:
        for metric, wanted in kind.metrics.items():
            name = f"{kind.__name__} {name_metric(metric)}"
            marks = pytest.mark.every_backend if EVERYWHERE.fullmatch(name) else ()
            yield pytest.param(kind, metric, wanted, id=name, marks=marks)


CASES = list(list_cases())


def measure(metric, form, *arrays, weights=None):
    """The result of a metric that gets the rows in two batches of different sizes."""
    metric = read_metric(metric, form)
    metric.reset_state()
    for part in (slice(0, 7), slice(7, None)):
        batch = [array[part] for array in arrays]
        metric.update_state(*batch, sample_weight=None if weights is None else weights[part])
    return keras.ops.convert_to_numpy(metric.result())


@pytest.mark.parametrize(("kind", "metric", "wanted"), CASES)
def test_values(kind, metric, wanted):
    got = measure(metric, kind.form, kind.labels, kind.logits)
    np.testing.assert_allclose(got, wanted, rtol=1e-2 if "AUC" in str(metric) else 1e-4)


#: Hinge losses and numbers are about the outputs as they are.
WITH_PROBABILITIES = [
    pytest.param(*case.values, id=case.id)
    for case in CASES
    if not re.search("(?i)hinge|figures", case.id)
]


@pytest.mark.parametrize(("kind", "metric", "wanted"), WITH_PROBABILITIES)
def test_values_of_probabilities(kind, metric, wanted):
    """A task with an activation has them as outputs."""
    is_object = isinstance(metric, keras.metrics.Metric)
    takes_logits = is_object and metric.get_config().get("from_logits")
    form = OutputForm(kind.form.kind, False, kind.form.size)
    if takes_logits:
        with pytest.raises(ValueError, match="are probabilities, got the metric .*=True"):
            read_metric(metric, form)
        return
    got = measure(metric, form, kind.labels, kind.p.astype("float32"))
    np.testing.assert_allclose(got, wanted, rtol=1e-2 if "AUC" in str(metric) else 1e-4)


@pytest.mark.parametrize("kind", [Three, Two])
def test_one_hot_rows_are_class_ids(kind):
    rows = np.eye(kind.form.size, dtype="float32")[kind.labels]
    for metric, wanted in kind.metrics.items():
        got = measure(metric, kind.form, rows, kind.logits)
        np.testing.assert_allclose(got, wanted, rtol=1e-2)


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param("accuracy", marks=pytest.mark.every_backend),
        "sparse_categorical_crossentropy",
        pytest.param(keras.metrics.Precision(class_id=1), marks=pytest.mark.every_backend),
        keras.metrics.Recall(),
        keras.metrics.F1Score(average="macro"),
        keras.metrics.MeanIoU(num_classes=3, dtype="float32"),
        MacroF1(),
        "CategoricalHinge",
    ],
)
def test_of_tokens_only_those_with_a_weight_count(metric):
    """The reference are the tokens that count, as rows of a classifier."""
    labels, logits = Three.labels.reshape(6, 10), Three.logits.reshape(6, 10, 3)
    weights = (np.arange(10) < RNG.integers(1, 10, (6, 1))).astype("float32")
    kept = weights.ravel() > 0
    wanted = measure(metric, Three.form, Three.labels[kept], Three.logits[kept])
    form = OutputForm("classes", size=3, are_tokens=True)
    for only_counts, scale in ((False, 1), (True, 5)):
        read = read_metric(metric, form, only_counts)
        read.reset_state()
        rows = np.where(np.arange(6) < 3, 1, scale)[:, None]
        for part in (slice(0, 2), slice(2, None)):
            read.update_state(labels[part], logits[part], (weights * rows)[part])
        got = keras.ops.convert_to_numpy(read.result())
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_weights_of_rows():
    weights = RNG.random(N).astype("float32")
    for kind, metric, wanted in (
        (Three, MacroF1(), sklearn.f1_score(
            Three.labels, Three.best, average="macro", sample_weight=weights
        )),
        (Two, "Precision", sklearn.precision_score(Two.labels, Two.found, sample_weight=weights)),
        (Sets, MacroF1(), sklearn.f1_score(
            Sets.labels, Sets.found, average="macro", sample_weight=weights
        )),
        (Sets, "accuracy", sklearn.accuracy_score(
            Sets.labels, Sets.found, sample_weight=weights
        )),
    ):  # fmt: skip
        got = measure(metric, kind.form, kind.labels, kind.logits, weights=weights)
        np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_weights_of_labels_are_none_of_rows():
    metric = read_metric(MacroF1(), Sets.form)
    with pytest.raises(ValueError, match="takes weights of rows .*`metrics`, and not of"):
        metric.update_state(Sets.labels, Sets.logits, np.ones_like(Sets.labels))


PLACES = OutputForm("classes", size=None)


@pytest.mark.every_backend
def test_places_of_an_answer():
    """First and last tokens (B, 2) of scores (B, 2, L)."""
    labels, logits = RNG.integers(0, 5, (8, 2)), draw(8, 2, 5)
    p, wanted = softmax(logits), labels.ravel()
    loss = sklearn.log_loss(wanted, p.reshape(-1, 5), labels=range(5))
    accuracy = np.mean(logits.argmax(-1) == labels)
    for metric, value in (
        ("accuracy", accuracy),
        ("categorical_accuracy", accuracy),
        ("sparse_categorical_crossentropy", loss),
        ("CategoricalCrossentropy", loss),
        (
            keras.metrics.SparseTopKCategoricalAccuracy(k=2),
            sklearn.top_k_accuracy_score(wanted, p.reshape(-1, 5), k=2, labels=range(5)),
        ),
    ):
        got = measure(metric, PLACES, labels, logits)
        np.testing.assert_allclose(got, value, rtol=1e-4)


@pytest.mark.parametrize(
    ("form", "metric", "error"),
    [
        (Three.form, "binary_accuracy", "binary_accuracy is not for classes. Pass 'accuracy'"),
        (Three.form, "R2Score", "R2Score is not for classes"),
        (Three.form, keras.metrics.Hinge(), "hinge is not for classes"),
        (Sets.form, "categorical_accuracy", "not for sets of labels. Pass 'accuracy' for whole"),
        (Sets.form, keras.metrics.SparseCategoricalAccuracy, "not for sets of labels"),
        (Sets.form, "KLDivergence", "not for sets of labels"),
        (Sets.form, keras.metrics.MeanIoU(num_classes=2), "not for sets of labels"),
        (Figures.form, "accuracy", "not for a regression with 2 outputs.* 'mean_squared_error'"),
        (Figures.form, "AUC", "not for a regression"),
        (Figures.form, MacroF1, "macro_f1 is not for a regression"),
        (OutputForm("numbers", size=1), "PearsonCorrelation", "`score` has the correlations"),
        (
            OutputForm("numbers", size=1),
            keras.metrics.CosineSimilarity(),
            "regression with 1 output.",
        ),
        (PLACES, keras.metrics.F1Score(), "labels that are places"),
        (PLACES, MacroF1(), "labels that are places"),
        (Three.form, LabelSetF1("micro", from_logits=False), "are logits, got the metric micro_f1"),
        (Three.form, "acuracy", "acuracy"),
    ],
)
def test_metrics_for_other_labels(form, metric, error):
    with pytest.raises(ValueError, match=error):
        read_metric(metric, form)


class OwnF1(keras.metrics.F1Score):
    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true, keras.ops.sigmoid(y_pred), sample_weight)


class NamedF1(keras.metrics.F1Score):
    """It has no computation of its own."""


def own_metric(y_true, y_pred):
    return y_pred


def test_metrics_of_the_user_stay():
    for metric in (own_metric, OwnF1(), keras.metrics.MeanMetricWrapper(own_metric), None):
        assert read_metric(metric, Sets.form) is metric
    wanted = sklearn.f1_score(Sets.labels, Sets.found, average="macro")
    for metric in (NamedF1("macro"), OwnF1("macro", threshold=0.5)):
        got = measure(metric, Sets.form, Sets.labels, Sets.logits)
        np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_all_metrics_of_keras_are_known():
    """A new one must say what it compares."""
    from keras_bert_suite.training.keras_forms import COMPARED

    known = {name for names in COMPARED.values() for name in names}
    bases = {"Metric", "Mean", "Sum", "MeanMetricWrapper"}
    for module, base in ((keras.metrics, keras.metrics.Metric), (keras.losses, keras.losses.Loss)):
        kinds = {
            name for name, v in vars(module).items() if isinstance(v, type) and issubclass(v, base)
        }
        assert kinds - known - bases - {"Loss"} == set()
