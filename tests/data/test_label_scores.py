"""The references are scikit-learn and SciPy."""

import numpy as np
import pytest

from keras_bert_suite.heads.base.label_scores import (
    correlate,
    rank,
    score_classes,
    score_label_sets,
    score_numbers,
)

metrics = pytest.importorskip("sklearn.metrics")
stats = pytest.importorskip("scipy.stats")

RNG = np.random.default_rng(0)
NAMES = ["a", "b", "c", "d"]


def check_each(each, labels, predicted):
    columns = metrics.precision_recall_fscore_support(
        labels, predicted, labels=range(len(NAMES)), zero_division=0
    )
    for got, wanted in zip(each.values(), zip(*columns, strict=True), strict=True):
        assert list(got.values()) == pytest.approx(wanted)


def test_classes():
    labels, predicted = RNG.integers(0, 3, 50), RNG.integers(0, 4, 50)  # Nothing is of class 3.
    predicted[:25] = labels[:25]
    scores = score_classes(labels, predicted, NAMES)
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(labels, predicted))
    assert scores["matthews"] == pytest.approx(metrics.matthews_corrcoef(labels, predicted))
    f1 = metrics.f1_score(labels, predicted, labels=range(4), average="macro", zero_division=0)
    assert scores["macro_f1"] == pytest.approx(f1)
    check_each(scores["classes"], labels, predicted)
    assert score_classes([0, 1], [1, 1], ["no", "yes"])["matthews"] == 0.0


def test_label_sets():
    labels = RNG.random((60, 4)) < [0.5, 0.2, 0.8, 0.0]
    predicted = labels ^ (RNG.random((60, 4)) < [0.2, 0.2, 0.2, 0.1])
    scores = score_label_sets(labels, predicted, NAMES)
    for average in ("micro", "macro"):
        f1 = metrics.f1_score(labels, predicted, average=average, zero_division=0)
        assert scores[f"{average}_f1"] == pytest.approx(f1)
    assert scores["micro_precision"] == pytest.approx(
        metrics.precision_score(labels, predicted, average="micro")
    )
    assert scores["micro_recall"] == pytest.approx(
        metrics.recall_score(labels, predicted, average="micro")
    )
    assert scores["exact_match"] == pytest.approx(metrics.accuracy_score(labels, predicted))
    check_each(scores["classes"], labels, predicted)


def test_numbers():
    targets = RNG.integers(0, 11, (80, 2)) / 2  # Many are equal.
    predictions = targets + RNG.normal(size=(80, 2))
    predictions[:5] = predictions[5:10]
    scores = score_numbers(targets, predictions)
    pairs = list(zip(targets.T, predictions.T, strict=True))
    pearson = np.mean([stats.pearsonr(*pair)[0] for pair in pairs])
    spearman = np.mean([stats.spearmanr(*pair)[0] for pair in pairs])
    assert scores["pearson"] == pytest.approx(pearson)
    assert scores["spearman"] == pytest.approx(spearman)
    error = metrics.mean_squared_error(targets, predictions)
    assert scores["mean_squared_error"] == pytest.approx(error)
    error = metrics.mean_absolute_error(targets, predictions)
    assert scores["mean_absolute_error"] == pytest.approx(error)
    np.testing.assert_array_equal(rank(targets[:, 0]), stats.rankdata(targets[:, 0]))


def test_a_constant_column_has_no_correlation():
    assert correlate(np.full(3, 0.1), np.arange(3.0)) == 0.0
