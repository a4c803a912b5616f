"""Scores of a classifier, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from keras_bert_cli.scores import count_confusions, score


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(0, 4, (2, 100))
    confusions = count_confusions(labels, predicted, 5)  # the last class never occurs
    np.testing.assert_array_equal(confusions, confusion_matrix(labels, predicted, labels=range(5)))
    scores = score(confusions, list("abcde"))
    assert scores["confusion_matrix"] == confusions.tolist()
    assert scores["rows"] == 100
    assert scores["accuracy"] == pytest.approx(accuracy_score(labels, predicted))
    among_all = {"labels": range(5), "zero_division": 0}
    macro_f1 = f1_score(labels, predicted, average="macro", **among_all)
    assert scores["macro_f1"] == pytest.approx(macro_f1)
    expected = precision_recall_fscore_support(labels, predicted, **among_all)
    got = [scores["classes"][name] for name in "abcde"]
    for kind, values in zip(("precision", "recall", "f1", "rows"), expected, strict=True):
        np.testing.assert_allclose([row[kind] for row in got], values)
