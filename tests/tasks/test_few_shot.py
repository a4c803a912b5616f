"""SetFit: the pairs of its sampler, the logistic regression of scikit-learn, one classifier."""

import itertools
import json

import keras
import numpy as np
import pytest
from small_embedder import make_embedder
from small_texts import make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.heads.texts.contrastive_pairs import make_pairs
from keras_bert_suite.heads.texts.logistic_regression import fit_logistic_regression

TEXTS, LABELS = make_reviews(16, seed=3)


def sample_as_setfit(labels, order, strategy, iterations, max_pairs):
    """`ContrastiveDataset` of setfit 1.1, transcribed, with its random order as an argument."""
    most = -1 if max_pairs is None else max_pairs // 2
    positive, negative = [], []
    for first, second in order:
        own, score = (positive, 1.0) if labels[first] == labels[second] else (negative, 0.0)
        if most == -1 or len(own) < most:
            own.append((first, second, score))
    sizes = {
        "unique": (len(positive), len(negative)),
        "oversampling": (max(len(positive), len(negative)),) * 2,
        "undersampling": (min(len(positive), len(negative)),) * 2,
    }[strategy]
    if iterations is not None:
        sizes = (iterations * len(labels),) * 2
    turns = [
        itertools.islice(itertools.cycle(own), size)
        for own, size in zip((positive, negative), sizes, strict=True)
    ]
    return [pair for both in itertools.zip_longest(*turns) for pair in both if pair is not None]


@pytest.mark.parametrize("strategy", ["oversampling", "undersampling", "unique"])
@pytest.mark.parametrize(("iterations", "max_pairs"), [(None, None), (3, None), (None, 20)])
def test_pairs_are_those_of_setfit(strategy, iterations, max_pairs):
    labels = np.array([0, 1, 2, 0, 0, 1, 0, 2, 0])
    order = np.stack(np.triu_indices(9), axis=-1)
    order = np.random.default_rng(5).permutation(order)
    wanted = sample_as_setfit(labels, order, strategy, iterations, max_pairs)
    pairs, scores = make_pairs(labels, strategy, iterations, max_pairs, seed=5)
    found = zip(pairs.tolist(), scores.tolist(), strict=True)
    assert [(*pair, score) for pair, score in found] == wanted


@pytest.mark.parametrize("num_classes", [2, 3, 5])
@pytest.mark.parametrize(("number", "width"), [(12, 40), (80, 6)])
@pytest.mark.parametrize("strength", [1.0, 0.05, 50.0])
def test_the_head_is_that_of_scikit_learn(num_classes, number, width, strength):
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    labels = np.arange(number) % num_classes
    vectors = rng.normal(size=(number, width)) + rng.normal(size=(num_classes, width))[labels]
    peer = linear.LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(vectors, labels)
    kernel, bias = fit_logistic_regression(vectors, labels, num_classes, strength)
    new = rng.normal(size=(50, width))
    powers = np.exp(new @ kernel + bias)
    found = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, peer.predict_proba(new), atol=1e-5)


def test_the_head_of_vectors_that_are_one_line_or_none():
    """Vectors of rank 1 and 0, and labels that a line separates, have an optimum, too."""
    vectors = np.outer(np.arange(8) - 3.5, np.ones(5))
    labels = (np.arange(8) > 3).astype(int)
    kernel, bias = fit_logistic_regression(vectors, labels, 2, 1e4)
    assert (np.argmax(vectors @ kernel + bias, axis=1) == labels).all()
    kernel, bias = fit_logistic_regression(np.zeros((8, 5)), [0, 0, 1, 0, 0, 0, 0, 0], 2)
    assert not kernel.any() and bias[0] - bias[1] == pytest.approx(np.log(7), abs=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"normalize": False},
        pytest.param(
            {"pooling": ["mean", "max"], "dimensions": 20}, marks=pytest.mark.every_backend
        ),
        {"dense_layers": [keras.layers.Dense(5, "tanh")]},
        {"pooling": "first_last_average"},
    ],
    ids=str,
)
def test_the_classifier_reads_the_vectors_of_the_embedder(arguments):
    linear = pytest.importorskip("sklearn.linear_model")
    embedder = make_embedder(**arguments)
    before = embedder.backbone.get_weights()
    classifier = kbs.fit_few_shot(embedder, TEXTS, LABELS, epochs=0)
    vectors = embedder.predict(TEXTS, verbose=0)
    vectors = vectors.astype("float64")
    peer = linear.LogisticRegression(tol=1e-10, max_iter=10_000).fit(vectors, LABELS)
    found = classifier.predict_probabilities(TEXTS, verbose=0)
    np.testing.assert_allclose(found, peer.predict_proba(vectors), atol=1e-5)
    for old, new in zip(before, embedder.backbone.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_it_learns_from_few_rows_of_a_label(tmp_path):
    """More than the embedder knew; saved, and loaded again; trained further."""
    texts, labels = make_reviews(60, seed=5)
    rows = [[i for i, label in enumerate(labels) if label == name][:16] for name in ("yes", "no")]
    rows = sum(rows, [])
    few, few_labels = [texts[i] for i in rows], [labels[i] for i in rows]
    dev = make_reviews(80, seed=9)
    embedder = make_embedder(dropout=0.1)
    frozen = kbs.fit_few_shot(embedder, few, few_labels, epochs=0).score(*dev)["accuracy"]
    classifier = kbs.fit_few_shot(
        embedder, few, few_labels, max_pairs=400, learning_rate=1e-2, epochs=4, verbose=0
    )
    assert classifier.score(*dev)["accuracy"] > frozen + 0.15
    assert classifier.label_names == ["no", "yes"]
    wanted = classifier.predict(few, verbose=0)
    classifier.save(tmp_path / "classifier.keras")
    classifier.save_to_preset(tmp_path / "preset")
    for again in (
        keras.models.load_model(tmp_path / "classifier.keras"),
        kbs.TextClassifier.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(again.predict(few, verbose=0), wanted, atol=1e-5)
    classifier.fit(few, few_labels, batch_size=16, verbose=0)


def test_equal_seeds_are_equal_classifiers():
    def train():
        keras.utils.set_random_seed(1)
        settings = {"strategy": "unique", "max_pairs": 24, "learning_rate": 1e-3, "seed": 2}
        classifier = kbs.fit_few_shot(make_embedder(), TEXTS, LABELS, verbose=0, **settings)
        return classifier.predict(TEXTS, verbose=0)

    np.testing.assert_array_equal(train(), train())


@pytest.mark.backend("tensorflow")
@pytest.mark.long("serving")
def test_it_is_served_as_a_text_classifier(tmp_path):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    classifier = kbs.fit_few_shot(make_embedder(), TEXTS, LABELS, epochs=0)
    path = kbs.export_saved_model(classifier, tmp_path / "m")
    found = tf.saved_model.load(str(path)).signatures["serving_default"](text=tf.constant(TEXTS))
    wanted = classifier.predict_probabilities(TEXTS, verbose=0)
    np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-5)
    assert json.loads((path / "assets.extra" / "task.json").read_text())["labels"] == ["no", "yes"]


@pytest.mark.parametrize(
    ("x", "y", "settings", "message"),
    [
        (TEXTS, ["yes"] * 16, {}, "needs 2 or more different labels"),
        (TEXTS, LABELS, {"label_names": ["no", "yes", "maybe"]}, "label 'maybe' has no row"),
        (TEXTS, [0, 2] * 8, {}, "label '1' has no row"),
        (TEXTS, [0.5, 1.5] * 8, {}, "all names or all ids, got 0.5 among them"),
        (TEXTS, ["yes", 1] * 8, {"strategy": "all"}, "strategy must be one of"),
        ((TEXTS, TEXTS), LABELS, {}, "single texts with one label each, got rows of 2 texts"),
        (TEXTS, LABELS[:-1], {}, "same number of rows"),
        (TEXTS, LABELS, {"strategy": "all"}, "strategy must be one of oversampling, undersampl"),
        (TEXTS, LABELS, {"iterations": 0}, "iterations must be an integer of at least 1, got 0"),
        (TEXTS, LABELS, {"max_pairs": 1}, "max_pairs must be an integer of at least 2, got 1"),
        (TEXTS, LABELS, {"epochs": -1}, "epochs must be an integer of at least 0, got -1"),
        (TEXTS, LABELS, {"strength": 0}, "strength must be a number above 0, got 0"),
    ],
    ids=range(12),
)
def test_wrong_arguments(embedder, x, y, settings, message):
    with pytest.raises(ValueError, match=message):
        kbs.fit_few_shot(embedder, x, y, **settings)


def test_pairs_of_one_label():
    with pytest.raises(ValueError, match="need two labels, got 3 rows with 1. Pass rows of two"):
        make_pairs(["yes"] * 3)


def test_another_task_is_refused(embedder):
    classifier = kbs.TextClassifier(embedder.backbone, num_classes=2)
    with pytest.raises(ValueError, match="tunes a TextEmbedder, got a TextClassifier"):
        kbs.fit_few_shot(classifier, TEXTS, LABELS)


@pytest.fixture(scope="module")
def embedder():
    """Not to be changed."""
    return make_embedder()
