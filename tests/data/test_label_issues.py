"""Confident learning, held against the rule of the paper, row by row."""

import numpy as np
import pytest

from keras_bert_suite.heads.base.label_issues import find_label_issues


def find_by_the_rule(labels, probabilities):
    """Northcutt et al., 2021, equations 1 and 2; and cleanlab's rule about the predicted class."""
    classes = range(probabilities.shape[1])
    thresholds = {
        j: np.mean([p[j] for p, label in zip(probabilities, labels, strict=True) if label == j])
        for j in classes
        if j in labels
    }
    found = []
    for p, label in zip(probabilities, labels, strict=True):
        confident = [j for j in thresholds if p[j] >= thresholds[j]]
        best = max(confident, key=lambda j: p[j], default=label)
        found.append(best != label and p[label] < max(p))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_of_the_paper(seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet([0.7] * 4, 300)
    labels = rng.integers(3, size=300)  # No row has the last class.
    found = find_label_issues(labels, probabilities)
    assert found.tolist() == find_by_the_rule(labels, probabilities)
    assert 20 < found.sum() < 280


def test_by_hand():
    # The thresholds are 0.7 and 0.725. Two rows reach neither: the model is just unsure.
    probabilities = np.array([[0.9, 0.1], [0.85, 0.15], [0.35, 0.65], [0.1, 0.9], [0.45, 0.55]])
    labels = np.array([0, 0, 0, 1, 1])
    assert find_label_issues(labels, probabilities).tolist() == [False] * 5
    labels = np.array([1, 0, 0, 1, 1])
    # The threshold of the second class falls to 0.517, of the first to 0.6.
    assert find_label_issues(labels, probabilities).tolist() == [True, False, True, False, False]


def test_equal_probabilities_reach_their_mean():
    probabilities = np.array([[0.1, 0.9]] * 3 + [[0.8, 0.2]] * 3)
    found = find_label_issues(np.array([1, 1, 0, 0, 0, 0]), probabilities)
    assert found.tolist() == [False, False, True, False, False, False]
