"""Training curves, scores and heat maps."""

import numpy as np
import pytest
from matplotlib.image import imread

import keras_bert_suite as kbs
from keras_bert_cli.plots import (
    plot_heat_map,
    plot_label_scores,
    plot_numbers,
    plot_pairs,
    plot_pretraining,
    plot_thresholds,
    plot_training_curves,
)


@pytest.mark.parametrize("epochs", [1, 3])
def test_training_curves(tmp_path, epochs):
    history = {
        name: list(np.linspace(start, 0.9, epochs))
        for name, start in (("loss", 3), ("val_loss", 2), ("accuracy", 0.2), ("val_accuracy", 0.1))
    }
    figure = plot_training_curves(history, tmp_path / "curves.png")
    for axes, name in zip(figure.axes, ("loss", "accuracy"), strict=True):
        training, held_out = axes.lines
        assert list(training.get_ydata()) == history[name]
        assert list(held_out.get_ydata()) == history[f"val_{name}"]
        assert list(training.get_xdata()) == list(range(1, epochs + 1))
        assert held_out.get_label() == f"test, {history[f'val_{name}'][-1]:.3f} at the end"
    assert imread(tmp_path / "curves.png")[..., :3].std() > 0.05
    del history["val_loss"]
    assert len(plot_training_curves(history).axes[0].lines) == 1


def test_curves_of_pretraining():
    rows = [
        {"step": step, "learning_rate": 0.1, "mlm_loss": 3 - step, "val_mlm_loss": 5 - step}
        for step in range(3)
    ]
    losses, _, rates = plot_pretraining(rows).axes
    assert [list(line.get_ydata()) for line in losses.lines] == [[3, 2, 1], [5, 4, 3]]
    assert losses.lines[1].get_label() == "masked tokens, held out, 3.000 at the end"
    assert [list(line.get_ydata()) for line in rates.lines] == [[0.1] * 3]


def test_curves_of_two_directions():
    row = {"step": 1, "learning_rate": 0.1, "forward_loss": 2.0, "backward_loss": 3.0}
    losses, accuracies, _ = plot_pretraining([{**row, "forward_accuracy": 0.5}]).axes
    labels = [line.get_label() for line in losses.lines]
    assert labels == ["next tokens, 2.000 at the end", "previous tokens, 3.000 at the end"]
    assert [list(line.get_ydata()) for line in accuracies.lines] == [[0.5]]


def test_a_confusion_matrix(tmp_path):
    names = ["negative", "neutral", "never seen"]
    labels = ["negative", *["neutral"] * 3]
    figure = kbs.plot_confusion_matrix(labels, [0, 1, 0, 1], names, tmp_path / "matrix.png")
    (axes,) = figure.axes
    shares = [[1, 0, 0], [1 / 3, 2 / 3, 0], [0, 0, 0]]  # A row is a true class.
    np.testing.assert_allclose(axes.images[0].get_array(), shares)
    numbers = {text.get_position(): text.get_text() for text in axes.texts}
    assert numbers[1, 1] == "2\n66.7%" and numbers[0, 1] == "1\n33.3%" and len(numbers) == 9
    for axis in (axes.xaxis, axes.yaxis):
        places = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        assert {place: label.get_text() for place, label in places} == dict(enumerate(names))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted", "true")
    assert axes.get_title() == "Accuracy 75.0%"
    assert imread(tmp_path / "matrix.png")[..., :3].std() > 0.05


@pytest.mark.parametrize(
    ("labels", "predicted", "names", "error"),
    [
        ([0, 1], ["bad", "good"], None, "has ids of classes, .* such as 'bad'. Pass label_names"),
        (["bad", "good"], [[0.2, 0.8], [0.9, 0.1]], None, r"predicted must be .* shape \(2, 2\)"),
        ([1.0, 0.0], ["1", "0"], None, "labels must be names or ids of classes, got 1.0"),
        (["bad", None], ["bad", "bad"], None, r"got None \(NoneType\) at row 1"),
        (["bad"], ["bad", "good"], None, "the same number of rows, at least one, got 1 and 2"),
        ([], [], None, "at least one, got 0 and 0"),
        (["bad"], ["bad"], "matrix.png", "label_names must be .* got 'matrix.png'"),
    ],
)
def test_no_confusion_matrix(labels, predicted, names, error):
    with pytest.raises(ValueError, match=error):
        kbs.plot_confusion_matrix(labels, predicted, names)


def test_a_confusion_matrix_of_many_classes():
    figure = kbs.plot_confusion_matrix(range(200), range(200), [f"class {i}" for i in range(200)])
    assert max(figure.get_size_inches()) * 150 < 10_000
    assert not figure.axes[0].texts


def test_a_notebook_shows_a_picture():
    figure = plot_label_scores({"PER": {"f1": 0.5, "entities": 3}}, None, "entities", "F1")
    assert figure._repr_png_().startswith(b"\x89PNG")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["PER (3)"]


def test_f1_over_thresholds(tmp_path):
    probabilities = np.array([[0.9], [0.6], [0.4], [0.1]])
    figure = plot_thresholds(
        [[1], [0], [1], [0]], probabilities, ["joy"], [0.3], tmp_path / "f1.png"
    )
    curve, dot = figure.axes[0].lines
    # All four texts are found at 0.05, three at 0.3, two at 0.5, one at 0.8, and none at 1.
    places = [list(curve.get_xdata()).index(x) for x in (0.05, 0.3, 0.5, 0.8, 1.0)]
    np.testing.assert_allclose(curve.get_ydata()[places], [4 / 6, 4 / 5, 2 / 4, 2 / 3, 0])
    np.testing.assert_allclose(dot.get_ydata(), 4 / 5)
    assert imread(tmp_path / "f1.png")[..., :3].std() > 0.01


@pytest.mark.parametrize("panels", [1, 3])
def test_a_heat_map(tmp_path, panels):
    values = np.random.default_rng(0).random((panels, 4, 6))
    rows, columns = [f"row {i}" for i in range(4)], [f"column {i}" for i in range(6)]
    figure = plot_heat_map(
        values if panels > 1 else values[0], rows, columns, path=tmp_path / "m.png"
    )
    *maps, colorbar = figure.axes
    for axes, wanted in zip(maps, values, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), wanted)
    assert [label.get_text() for label in maps[0].get_yticklabels()] == rows
    assert [label.get_text() for label in maps[-1].get_xticklabels()] == columns
    assert imread(tmp_path / "m.png")[..., :3].std() > 0.05


def test_predicted_numbers():
    figure = plot_numbers([1, 4], [2, 3], "error 1.0")
    (dots,), (line,) = figure.axes[0].collections, figure.axes[0].lines
    np.testing.assert_allclose(dots.get_offsets(), [[1, 2], [4, 3]])
    assert list(line.get_xdata()) == list(line.get_ydata()) == [1, 4]


def test_pairs_of_scores():
    figure = plot_pairs([[0.5, 0.75], [0.625, 0.875]], ["before", "after"], "accuracy of 2 seeds")
    lines = [list(line.get_ydata()) for line in figure.axes[0].lines]
    assert lines == [[0.5, 0.625], [0.75, 0.875], [0.625, 0.75]]  # the last has the means
    assert figure.axes[0].get_legend().get_texts()[0].get_text() == "means, 0.625 and 0.750"
