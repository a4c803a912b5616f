"""A confusion matrix, against scikit-learn's."""

import numpy as np
from sklearn.metrics import confusion_matrix

from keras_bert_cli.scores import count_confusions


def test_confusions_are_those_of_scikit_learn():
    labels, predicted = np.random.default_rng(0).integers(0, 4, (2, 100))
    confusions = count_confusions(labels, predicted, 5)  # the last class never occurs
    np.testing.assert_array_equal(confusions, confusion_matrix(labels, predicted, labels=range(5)))
