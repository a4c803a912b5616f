"""Sets of labels and numbers as the answers of a `TextClassifier`, and losses of Keras."""

import json

import keras
import numpy as np
import pandas
import pytest
import scipy.special
from keras import ops
from peer_weights import to_numpy
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import AdamW, BertBackbone, SegmentPacker, TextClassifier, WordPieceTokenizer
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.training import LabelwiseLoss

LENGTH = 16
NAMES = ["good", "bad", "plot"]
TEXTS, CLASSES = make_reviews(32)
#: The labels of a text are the words of these names that it has.
SETS = [[name for name in NAMES if name in text.split()] for text in TEXTS]
MATRIX = np.array([[name in row for name in NAMES] for row in SETS], "float32")
#: The number of words.
NUMBERS = np.array([len(text.split()) / 4 for text in TEXTS], "float32")


def make_classifier(problem_type, dtype=None, **kwargs):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,))
    backbone = BertBackbone(**ONE_LAYER, dropout=0.0, dtype=dtype)
    return TextClassifier(
        backbone, problem_type=problem_type, preprocessor=packer, dropout=0.0, **kwargs
    )


def make_multi_label(**kwargs):
    kwargs = {"label_names": NAMES, **kwargs}
    return make_classifier("multi_label_classification", **kwargs)


def make_regression(num_classes=1, **kwargs):
    return make_classifier("regression", num_classes=num_classes, **kwargs)


@pytest.fixture(scope="module")
def trained():
    """A classifier for sets of labels after a few epochs."""
    keras.utils.set_random_seed(0)
    classifier = make_multi_label()
    classifier.compile(AdamW(5e-3))
    classifier.fit(TEXTS, SETS, batch_size=16, epochs=4, verbose=0)
    return classifier


@pytest.fixture(scope="module")
def regression():
    """A regression after a few epochs."""
    keras.utils.set_random_seed(0)
    classifier = make_regression()
    classifier.compile(AdamW(5e-3))
    losses = classifier.fit(TEXTS, NUMBERS, batch_size=16, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
    return classifier


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def test_metrics_and_scores_of_sets_of_labels(trained):
    """Beside scikit-learn."""
    metrics = pytest.importorskip("sklearn.metrics")
    logits = trained.predict(TEXTS, batch_size=16, verbose=0)
    assert logits.shape == (32, 3) and logits.dtype == "float32"
    evaluated = trained.evaluate(TEXTS, SETS, batch_size=16, verbose=0, return_dict=True)
    assert evaluated["loss"] == pytest.approx(metrics.log_loss(
        MATRIX.ravel(), sigmoid(logits).ravel()
    ), rel=1e-4)  # fmt: skip
    scores = trained.score(TEXTS, SETS, batch_size=16)
    for average in ("micro", "macro"):
        wanted = metrics.f1_score(MATRIX, logits > 0, average=average, zero_division=0)
        assert evaluated[f"{average}_f1"] == pytest.approx(wanted, abs=1e-5)
        assert scores[f"{average}_f1"] == pytest.approx(wanted)
    assert scores["exact_match"] == pytest.approx(metrics.accuracy_score(MATRIX, logits > 0))
    assert list(scores["classes"]) == NAMES


def test_thresholds_are_tuned_saved_and_used(trained, tmp_path):
    metrics = pytest.importorskip("sklearn.metrics")
    before = list(trained.thresholds)
    assert before == [0.5] * 3
    f1_before = trained.score(TEXTS, SETS)["macro_f1"]
    tuned = trained.tune_thresholds(TEXTS, SETS)
    assert list(tuned) == NAMES and list(tuned.values()) == trained.thresholds
    assert trained.score(TEXTS, SETS)["macro_f1"] >= f1_before
    probabilities = sigmoid(trained.predict(TEXTS, verbose=0))
    for number, name in enumerate(NAMES):
        tried = [
            metrics.f1_score(MATRIX[:, number], probabilities[:, number] >= threshold)
            for threshold in probabilities[:, number]
        ]
        assert trained.score(TEXTS, SETS)["classes"][name]["f1"] == pytest.approx(max(tried))
    labels = trained.predict_labels(TEXTS, verbose=0)
    assert labels == [
        [name for name, p, t in zip(NAMES, row, trained.thresholds, strict=True) if p > t]
        for row in probabilities
    ]
    trained.save(tmp_path / "task.keras")
    assert keras.saving.load_model(tmp_path / "task.keras").thresholds == list(tuned.values())
    trained.save_to_preset(str(tmp_path / "preset"))
    twin = TextClassifier.from_preset(tmp_path / "preset")
    assert twin.problem_type == "multi_label_classification"
    assert twin.predict_labels(TEXTS, verbose=0) == labels
    save_hugging_face(twin, tmp_path / "hugging_face")
    config = json.loads((tmp_path / "hugging_face" / "config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    again = TextClassifier.from_preset(tmp_path / "hugging_face")
    assert again.predict_labels(TEXTS, verbose=0) == labels
    for folder in ("preset", "hugging_face"):
        with pytest.warns(UserWarning, match="left out.*has problem_type='multi_label"):
            other = TextClassifier.from_preset(tmp_path / folder, label_names=["new"])
        assert other.problem_type == "multi_label_classification" and other.thresholds == [0.5]
        with pytest.warns(UserWarning, match="left out.*has problem_type='single_label"):
            other = TextClassifier.from_preset(
                tmp_path / folder, num_classes=4, problem_type="single_label_classification"
            )
        assert other.problem_type == "single_label_classification" and other.thresholds is None
    with pytest.warns(UserWarning, match="left out"):
        other = TextClassifier.from_preset(
            tmp_path / "preset", num_classes=1, problem_type="regression"
        )
    assert other.predict_labels(TEXTS[:2], verbose=0).shape == (2,)
    trained.thresholds = before


@pytest.mark.parametrize("activation", [None, "softmax"])
def test_a_threshold_of_two_classes(activation, tmp_path):
    """The highest F1 is that of scikit-learn over all thresholds. Files and exports have it."""
    metrics = pytest.importorskip("sklearn.metrics")
    keras.utils.set_random_seed(1)
    single, names = "single_label_classification", ["no", "yes"]
    classifier = make_classifier(single, label_names=names, activation=activation)
    outputs = classifier.predict(TEXTS, verbose=0)
    probabilities = classifier.predict_probabilities(TEXTS, verbose=0)
    wanted = outputs if activation else scipy.special.softmax(outputs, axis=-1)
    np.testing.assert_allclose(probabilities, wanted, atol=1e-6)
    assert probabilities.dtype == "float32" and classifier.thresholds is None
    classes = classifier.data.labels.encode(np.array(CLASSES))
    for place, label in ((0, "no"), (1, None)):
        tuned = classifier.tune_thresholds(TEXTS, CLASSES, label=label)
        assert list(tuned.values()) == classifier.thresholds and sum(tuned.values()) == 1
        likely = probabilities[:, place]
        tried = [metrics.f1_score(classes == place, likely >= cut) for cut in likely]
        scores = classifier.score(TEXTS, CLASSES)
        assert scores["classes"][names[place]]["f1"] == pytest.approx(max(tried))
    labels = classifier.predict_labels(TEXTS, verbose=0)
    assert labels == [names[int(p > classifier.thresholds[1])] for p in probabilities[:, 1]]
    served = classifier.answers.serve(ops, ops.convert_to_tensor(outputs), None)
    assert [names[i] for i in to_numpy(served["label_ids"])] == labels
    classifier.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras")
    assert twin.predict_labels(TEXTS, verbose=0) == labels
    if activation is None:
        save_hugging_face(classifier, tmp_path / "hugging_face")
        again = TextClassifier.from_preset(tmp_path / "hugging_face")
        assert again.predict_labels(TEXTS, verbose=0) == labels


def test_weights_of_labels_are_those_of_pytorch(trained):
    torch = pytest.importorskip("torch")
    logits = torch.tensor(trained.predict(TEXTS, batch_size=16, verbose=0))
    weights = {"good": 3.0, 2: 0.5}
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.tensor(MATRIX), pos_weight=torch.tensor([3.0, 1.0, 0.5])
    )
    trained.compile(keras.optimizers.SGD(0.0), metrics=[])
    for arguments in (
        {"x": TEXTS, "y": SETS, "batch_size": 16},
        {"x": iter([(TEXTS[:16], SETS[:16]), (TEXTS[16:], MATRIX[16:])])},
    ):
        history = trained.fit(**arguments, class_weight=weights, verbose=0).history
        assert history["loss"][0] == pytest.approx(float(wanted), rel=1e-5)
    counts = MATRIX.sum(axis=0)
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.tensor(MATRIX), pos_weight=torch.tensor((len(MATRIX) - counts) / counts)
    )
    history = trained.fit(TEXTS, SETS, 16, class_weight="balanced", verbose=0).history
    assert history["loss"][0] == pytest.approx(float(wanted), rel=1e-5)
    # A weight of 0 leaves a label out, such as a label that nobody has looked at.
    mask = np.array([1.0, 0.0, 1.0]) * np.ones_like(MATRIX)
    got = trained.evaluate(TEXTS, SETS, batch_size=16, sample_weight=mask, verbose=0)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, torch.tensor(MATRIX), weight=torch.tensor(mask)
    )
    assert got == pytest.approx(float(losses), rel=1e-5)
    trained.compile("sgd", loss=keras.losses.BinaryFocalCrossentropy(from_logits=True))
    with pytest.raises(ValueError, match=r"loss=LabelwiseLoss\(loss\)"):
        trained.fit(TEXTS, SETS, class_weight=weights, verbose=0)
    trained.compile(AdamW(5e-3))


def test_a_table_of_labels(trained, regression):
    table = pandas.DataFrame(MATRIX[:, ::-1], columns=NAMES[::-1], index=range(5, 37))
    wanted = trained.evaluate(TEXTS, SETS, batch_size=16, verbose=0)
    assert trained.evaluate(TEXTS, table, batch_size=16, verbose=0) == pytest.approx(wanted)
    batches = iter([(TEXTS[:16], table[:16]), (TEXTS[16:], table[16:])])
    assert trained.evaluate(batches, verbose=0) == pytest.approx(wanted, abs=1e-4)
    with pytest.raises(ValueError, match="'plto'"):
        trained.fit(TEXTS, table.rename(columns={"plot": "plto"}), verbose=0)
    numbers = pandas.DataFrame({"score": NUMBERS})
    assert regression.evaluate(TEXTS, numbers, verbose=0)[0] == pytest.approx(
        regression.evaluate(TEXTS, NUMBERS, verbose=0)[0], rel=1e-5
    )


@pytest.mark.long("combinations")
@pytest.mark.parametrize("form", ["ragged", "matrix"])
def test_batches_of_a_tensorflow_dataset(trained, form):
    tf = pytest.importorskip("tensorflow")
    labels = tf.ragged.constant(SETS) if form == "ragged" else tf.constant(MATRIX)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, labels)).batch(16)
    wanted = trained.evaluate(TEXTS, SETS, batch_size=16, verbose=0)
    assert trained.evaluate(dataset, verbose=0) == pytest.approx(wanted, abs=1e-4)


def test_batches_of_lists_of_labels(trained):
    torch = pytest.importorskip("torch")
    rows = list(zip(TEXTS, SETS, strict=True))
    wanted = trained.evaluate(TEXTS, SETS, batch_size=16, verbose=0)

    def collate(rows):
        return [text for text, _ in rows], [labels for _, labels in rows]

    loader = torch.utils.data.DataLoader(rows, 16, collate_fn=collate)
    assert trained.evaluate(loader, verbose=0) == pytest.approx(wanted, abs=1e-4)


def test_scores_of_a_regression(regression):
    stats = pytest.importorskip("scipy.stats")
    outputs = regression.predict(TEXTS, batch_size=16, verbose=0)
    assert outputs.shape == (32, 1) and outputs.dtype == "float32"
    numbers = regression.predict_labels(TEXTS, verbose=0)
    np.testing.assert_allclose(numbers, outputs[:, 0], atol=1e-5)
    scores = regression.score(TEXTS, NUMBERS)
    assert scores["pearson"] == pytest.approx(stats.pearsonr(NUMBERS, numbers)[0], abs=1e-5)
    assert scores["spearman"] == pytest.approx(stats.spearmanr(NUMBERS, numbers)[0], abs=1e-5)
    errors = outputs[:, 0] - NUMBERS
    loss, error = regression.evaluate(TEXTS, NUMBERS, batch_size=16, verbose=0)
    assert loss == pytest.approx(np.mean(errors**2), rel=1e-4)
    assert error == pytest.approx(np.mean(np.abs(errors)), rel=1e-4)


def test_several_targets():
    classifier = make_regression(num_classes=2)
    targets = np.stack([NUMBERS, -NUMBERS], axis=1)
    classifier.fit(TEXTS, targets, batch_size=16, verbose=0)
    assert classifier.predict_labels(TEXTS[:3], verbose=0).shape == (3, 2)
    assert classifier.score(TEXTS, targets).keys() >= {"pearson", "spearman"}


def test_low_precision():
    classifier = make_multi_label(dtype="mixed_bfloat16", activation="sigmoid")
    history = classifier.fit(TEXTS, MATRIX, batch_size=16, verbose=0).history
    assert {*history} == {"loss", "micro_f1", "macro_f1"} and np.isfinite(history["loss"][0])
    outputs = classifier.predict(TEXTS, verbose=0)
    assert outputs.dtype == "float32" and 0 < outputs.min() and outputs.max() < 1
    wanted = [[name for name, p in zip(NAMES, row, strict=True) if p > 0.5] for row in outputs]
    assert outputs.min() < 0.5
    assert classifier.predict_labels(TEXTS, verbose=0) == wanted


@pytest.mark.parametrize(
    ("problem_type", "loss"),
    [
        ("single_label_classification", "CategoricalCrossentropy"),
        ("single_label_classification", "CategoricalFocalCrossentropy"),
        ("multi_label_classification", "BinaryCrossentropy"),
        ("multi_label_classification", "BinaryFocalCrossentropy"),
    ],
)
def test_smoothed_and_focal_losses_of_keras(problem_type, loss, tmp_path):
    """The reference is the loss of Keras on one-hot labels."""
    single = problem_type.startswith("single")
    labels = CLASSES if single else SETS
    classifier = make_classifier(problem_type, label_names=["no", "yes"] if single else NAMES)
    loss = getattr(keras.losses, loss)(from_logits=True, label_smoothing=0.1)
    classifier.compile(AdamW(1e-3), loss=loss)
    got, *_ = classifier.evaluate(TEXTS, labels, batch_size=16, verbose=0)
    one_hot = np.array([[c == "no", c == "yes"] for c in CLASSES], "float32") if single else MATRIX
    outputs = classifier.predict(TEXTS, verbose=0)
    assert got == pytest.approx(float(loss(one_hot, outputs)), rel=1e-4)
    if single:  # One-hot and soft labels stay as they are.
        assert classifier.evaluate(TEXTS, one_hot, verbose=0)[0] == pytest.approx(got, rel=1e-4)
    else:
        classifier.compile(AdamW(1e-3), loss=LabelwiseLoss(loss))
        assert classifier.evaluate(TEXTS, SETS, verbose=0)[0] == pytest.approx(got, rel=1e-4)
        classifier.fit(TEXTS, SETS, batch_size=16, class_weight={"good": 2.0}, verbose=0)
    classifier.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras")
    assert twin.loss.get_config() == classifier.loss.get_config()


@pytest.mark.parametrize(
    ("problem_type", "name", "activation"),
    [
        ("single_label_classification", "sparse_categorical_crossentropy", None),
        ("multi_label_classification", "binary_crossentropy", "sigmoid"),
        *(
            pytest.param(*row, marks=pytest.mark.long("combinations"))
            for row in (
                ("single_label_classification", "sparse_categorical_crossentropy", "softmax"),
                ("single_label_classification", "categorical_crossentropy", None),
                ("single_label_classification", "categorical_crossentropy", "softmax"),
                ("multi_label_classification", "binary_crossentropy", None),
            )
        ),
    ],
)
def test_names_and_functions_of_losses(problem_type, name, activation, tmp_path):
    """They are the losses of the outputs, which are logits or probabilities."""
    single = problem_type.startswith("single")
    labels, names = (CLASSES, ["no", "yes"]) if single else (SETS, NAMES)
    classifier = make_classifier(problem_type, label_names=names, activation=activation)
    wanted = classifier.evaluate(TEXTS, labels, batch_size=16, verbose=0)[0]
    for loss in (name, getattr(keras.losses, name), [name]):
        classifier.compile("sgd", loss=loss)
        got = classifier.evaluate(TEXTS, labels, batch_size=16, verbose=0)[0]
        assert got == pytest.approx(wanted, rel=1e-4)
    classifier.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras")
    got = twin.evaluate(TEXTS, labels, batch_size=16, verbose=0)[0]
    assert got == pytest.approx(wanted, rel=1e-4)


def test_activations_by_every_name():
    """Names, functions and configurations are those of Keras."""
    logits = make_multi_label()
    inputs = logits.preprocessor(TEXTS[:2])
    for name in ("linear", "sigmoid"):
        function = getattr(keras.activations, name)
        wanted = function(logits(inputs))
        for activation in (name, function, keras.activations.serialize(function)):
            other = make_multi_label(activation=activation)
            other.set_weights(logits.get_weights())
            np.testing.assert_allclose(to_numpy(other(inputs)), to_numpy(wanted), rtol=1e-5)


def test_soft_labels():
    classifier = make_classifier("single_label_classification", label_names=["no", "yes"])
    soft = np.tile([[0.3, 0.7]], (32, 1))
    outputs = classifier.predict(TEXTS, batch_size=16, verbose=0)
    wanted = float(keras.losses.CategoricalCrossentropy(from_logits=True)(soft, outputs))
    accuracy = np.mean(outputs.argmax(axis=1) == 1)
    for loss in (
        "auto",
        keras.losses.CategoricalCrossentropy(from_logits=True),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ):
        classifier.compile("sgd", loss=loss)
        got = classifier.evaluate(TEXTS, soft, batch_size=16, verbose=0)
        assert got == pytest.approx([wanted, accuracy], rel=1e-4)
        classifier.compile(keras.optimizers.SGD(0.0), loss=loss, metrics=None)
        history = classifier.fit(TEXTS, soft, batch_size=16, verbose=0).history
        assert history == {"loss": [pytest.approx(wanted, rel=1e-4)]}
    assert classifier.score(TEXTS, soft)["accuracy"] == pytest.approx(accuracy)
    classifier.fit_on_features(TEXTS, soft, epochs=1, verbose=0)


def test_transformers_computes_the_same(tmp_path):
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    def save_peer(num_labels, folder, **config):
        config = BertConfig(
            vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=64, num_labels=num_labels, **config,
        )  # fmt: skip
        peer = BertForSequenceClassification(config).eval()
        peer.save_pretrained(tmp_path / folder)
        (tmp_path / folder / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
        return peer

    for folder, num_labels, given, wanted in (
        ("one output", 1, None, "regression"),
        ("regression", 2, "regression", "regression"),
        ("multi", 3, "multi_label_classification", "multi_label_classification"),
    ):
        peer = save_peer(num_labels, folder, problem_type=given)
        classifier = TextClassifier.from_preset(tmp_path / folder)
        assert classifier.problem_type == wanted
        packed = {k: torch.tensor(v) for k, v in classifier.preprocessor(TEXTS[:4]).items()}
        with torch.no_grad():
            logits = peer(
                packed["token_ids"], packed["padding_mask"], packed["segment_ids"]
            ).logits.numpy()
        np.testing.assert_allclose(classifier.predict(TEXTS[:4], verbose=0), logits, atol=1e-5)
        written = tmp_path / f"{folder} again"
        save_hugging_face(classifier, written)
        again = BertForSequenceClassification.from_pretrained(written)
        assert again.config.problem_type == wanted and again.config.num_labels == num_labels
    # The checkpoint's own layer with another reading of its outputs.
    save_peer(3, "no problem_type")
    classifier = TextClassifier.from_preset(
        tmp_path / "no problem_type", problem_type="multi_label_classification"
    )
    assert classifier.label_names == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert classifier.thresholds == [0.5] * 3


def test_answers_of_a_server(trained, regression):
    outputs = np.array([[-1.0, 0.0, 2.0]], "float32")
    answers = trained.answers.serve(ops, ops.convert_to_tensor(outputs), None)
    assert ops.convert_to_numpy(answers["is_label"]).tolist() == [[False, False, True]]
    probabilities = ops.convert_to_numpy(answers["probabilities"])
    np.testing.assert_allclose(probabilities, sigmoid(outputs), rtol=1e-5)
    answers = regression.answers.serve(ops, ops.convert_to_tensor(outputs[:, :1]), None)
    assert ops.convert_to_numpy(answers["scores"]).tolist() == [[-1.0]]


def test_labels_on_a_regression_are_classes(regression, tmp_path):
    regression.save_to_preset(str(tmp_path / "preset"))
    with pytest.warns(UserWarning, match="has problem_type='single_label"):
        other = TextClassifier.from_preset(tmp_path / "preset", label_names=["no", "yes"])
    assert other.problem_type == "single_label_classification"
    with (
        pytest.raises(ValueError, match="2 or more different labels"),
        pytest.warns(UserWarning, match="left out"),
    ):
        TextClassifier.from_preset(tmp_path / "preset", num_classes=1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"problem_type": "ranking"}, "must be one of single_label.*, got 'ranking'"),
        ({"num_classes": 1}, r"2 or more different labels, got \['0'\]. For a number"),
        ({"num_classes": 0, "problem_type": "regression"}, r"needs 1 or more .* got \[\]"),
        ({"num_classes": 1, "problem_type": "regression", "activation": "sigmoid"}, "must be None"),
        (
            {
                "num_classes": 2,
                "problem_type": "multi_label_classification",
                "activation": "softmax",
            },
            "must be None, for logits, or 'sigmoid' with",
        ),
        ({"num_classes": 3, "thresholds": [0.5] * 3}, "thresholds are for two classes and for pro"),
        ({"num_classes": 2, "thresholds": [0.5, 0.3]}, r"above 0.3: \[0.7, 0.3\]"),
        (
            {"num_classes": 2, "problem_type": "multi_label_classification", "thresholds": [0.5]},
            r"must be 2 numbers in \[0, 1\].* got \[0.5\]",
        ),
    ],
)
def test_wrong_arguments(arguments, error):
    with pytest.raises(ValueError, match=error):
        TextClassifier(BertBackbone(**ONE_LAYER), **arguments)


def test_wrong_calls(trained, regression):
    with pytest.raises(ValueError, match="A regression has no classes"):
        regression.fit(TEXTS, NUMBERS, class_weight={0: 2.0})
    with pytest.raises(ValueError, match="has no thresholds"):
        regression.tune_thresholds(TEXTS, NUMBERS)
    with pytest.raises(ValueError, match="label must be one of two classes, got 'good'"):
        trained.tune_thresholds(TEXTS, SETS, label="good")
    with pytest.raises(ValueError, match="A regression has no probabilities"):
        regression.predict_probabilities(TEXTS)
    with pytest.raises(ValueError, match="got the loss binary_crossentropy with from_logits=False"):
        make_multi_label().compile(loss=keras.losses.BinaryCrossentropy())
    with pytest.raises(ValueError, match="'dull' at row 1"):
        trained.fit(TEXTS[:2], [["good"], ["dull"]])
