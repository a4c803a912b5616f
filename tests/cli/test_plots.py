"""Training curves and the confusion matrix."""

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.metrics import confusion_matrix

from keras_bert_cli.plots import (
    count_confusions,
    plot_confusion_matrix,
    plot_training_curves,
)

pytestmark = pytest.mark.backend_free


def test_confusions_are_counted_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(0, 4, (2, 100))
    np.testing.assert_array_equal(
        count_confusions(labels, predicted, 5),
        confusion_matrix(labels, predicted, labels=range(5)),
    )


@pytest.mark.parametrize("epochs", [1, 3])
def test_pictures_are_written(tmp_path, epochs):
    history = {name: list(np.linspace(0.2, 0.9, epochs)) for name in ("loss", "accuracy")}
    plot_training_curves(history, tmp_path / "without.png")
    history |= {f"val_{name}": values for name, values in history.items()}
    plot_training_curves(history, tmp_path / "with.png")
    names = ["negative", "neutral", "never seen"]
    plot_confusion_matrix([0, 1, 1], [0, 1, 0], names, tmp_path / "matrix.png")
    for file in ("without.png", "with.png", "matrix.png"):
        picture = imread(tmp_path / file)
        assert min(picture.shape[:2]) > 400
        assert picture[..., :3].std() > 0.05
