"""Training curves and the confusion matrix."""

import numpy as np
import pytest
from matplotlib.image import imread

from keras_bert_cli.plots import plot_confusion_matrix, plot_training_curves

pytestmark = pytest.mark.backend_free


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


def test_a_confusion_matrix_of_many_classes(tmp_path):
    names = [f"class {i}" for i in range(200)]
    plot_confusion_matrix(range(200), range(200), names, tmp_path / "matrix.png")
    assert max(imread(tmp_path / "matrix.png").shape) < 10_000
