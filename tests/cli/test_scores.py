"""A confusion matrix, against scikit-learn's, and the tables of scores."""

import re

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from keras_bert_cli.adapted_scores import print_differences
from keras_bert_cli.scores import print_scores
from keras_bert_suite.heads.base.label_scores import count_confusions


def test_confusions_are_those_of_scikit_learn():
    labels, predicted = np.random.default_rng(0).integers(0, 4, (2, 100))
    confusions = count_confusions(labels, predicted, 5)  # the last class never occurs
    np.testing.assert_array_equal(confusions, confusion_matrix(labels, predicted, labels=range(5)))


@pytest.mark.parametrize("name", ["classes", "types"])
def test_each_class_and_each_part_is_a_row_of_a_table(capsys, name):
    scores = {
        "f1": 0.5,
        name: {"A": {"recall": 0.25, "support": 3}, "B": {"recall": 1.0, "support": 1}},
        "answered": {"f1": 0.125, "total": 2},
        "label_names": ["A", "B"],
        "confusion_matrix": [[1, 2], [0, 1]],
    }
    print_scores(scores)
    words = [re.findall(r"[\w.]+", line) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in words if line] == [
        ["f1", "0.5000"],
        [name, "recall", "support"],
        ["A", "0.2500", "3"],
        ["B", "1.0000", "1"],
        ["answered", "f1", "total"],
        ["0.1250", "2"],
        ["true", "predicted", "A", "B"],
        ["A", "1", "2"],
        ["B", "0", "1"],
    ]


def test_differences_are_gains_of_the_adapted_model(capsys):
    before = [{"f1": 0.5}, {"f1": 0.25}, {"f1": 0.75}]
    print_differences(before, [{"f1": 0.75}, {"f1": 0.625}, {"f1": 0.625}])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "f1" in line)
    assert re.findall(r"([-\d.]+)±", line) == ["0.5000", "0.6667", "0.1667"] and "2 of 3" in line
