"""The rows that a task answers wrongly, held against what it predicts."""

import dataclasses
import types

import numpy as np
import pandas
import pytest
from peer_weights import randomize
from scipy.special import log_softmax
from small_tasks import make_task
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.heads.attributes.answers import AttributeAnswers
from keras_bert_suite.heads.attributes.data import AttributeLabels
from keras_bert_suite.heads.base.answers import ClassAnswers, LabelSetAnswers, NumberAnswers
from keras_bert_suite.heads.base.folds import deal_into_folds
from keras_bert_suite.heads.base.label_issues import find_label_issues
from keras_bert_suite.heads.base.labels import Classes, LabelSets, Numbers
from keras_bert_suite.heads.base.wrong_answers import WrongAnswer
from keras_bert_suite.heads.tags.answers import WordAnswers
from keras_bert_suite.heads.tags.labels import Tags

TEXTS, LABELS = make_reviews(20)


@pytest.fixture(scope="module")
def classifier():
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    names = ["no", "yes"]
    task = kbs.TextClassifier(kbs.BertBackbone(**ONE_LAYER), label_names=names, preprocessor=packer)
    randomize(task)
    margins = np.diff(task.predict(TEXTS, verbose=0))
    task.classifier.bias.assign_sub([0, np.median(margins)])
    return task


def test_classes(classifier):
    wrong = classifier.inspect(TEXTS, LABELS)
    names = classifier.label_names
    logs = log_softmax(classifier.predict(TEXTS, verbose=0).astype("float64"), axis=-1)
    predicted = classifier.predict_labels(TEXTS, verbose=0)
    rows = [i for i, label in enumerate(LABELS) if predicted[i] != label]
    assert 0 < len(rows) < len(TEXTS)
    rows.sort(key=lambda i: logs[i, names.index(LABELS[i])])
    assert [w.row for w in wrong] == rows
    for w in wrong:
        assert w.texts == (TEXTS[w.row],)
        assert (w.label, w.predicted) == (LABELS[w.row], predicted[w.row])
        assert w.loss == pytest.approx(-logs[w.row, names.index(w.label)])
        assert w.label_probability == pytest.approx(np.exp(-w.loss))
        assert w.probability == pytest.approx(np.exp(logs[w.row].max()))
    suspects = find_label_issues(np.array([names.index(label) for label in LABELS]), np.exp(logs))
    assert {w.row for w in wrong if w.label_looks_wrong} == {*np.flatnonzero(suspects)}


def test_packed_arrays_have_no_texts(classifier):
    packed = classifier.preprocessor(TEXTS)
    wrong = classifier.inspect(packed, LABELS)
    texts = classifier.inspect(TEXTS, LABELS)
    for a, b in zip(wrong, texts, strict=True):
        numbers = {name: getattr(b, name) for name in ("probability", "label_probability", "loss")}
        assert {name: getattr(a, name) for name in numbers} == pytest.approx(numbers)
        assert dataclasses.replace(a, **numbers) == dataclasses.replace(b, texts=())


def test_sets_of_labels():
    logits = np.array([[2.0, -1.0], [0.5, 0.5], [-3.0, 1.0]], "float32")
    labels = np.array([[1, 0], [1, 0], [1, 1]], "float32")
    answers = LabelSetAnswers(LabelSets(["joy", "fear"]))
    wrong = answers.inspect(logits, None, labels)
    p = 1 / (1 + np.exp(-logits.astype("float64")))
    assert [(w.row, w.label, w.predicted) for w in wrong] == [
        (1, ["joy"], ["joy", "fear"]),
        (2, ["joy", "fear"], ["fear"]),
    ]
    assert wrong[0].label_probability == pytest.approx(p[1, 0] * (1 - p[1, 1]))
    assert wrong[0].probability == pytest.approx(p[1, 0] * p[1, 1])
    assert wrong[1].loss == pytest.approx(-np.log(p[2]).sum())


def test_numbers():
    answers = NumberAnswers(Numbers(["score"]))
    wrong = answers.inspect(np.array([[1.0], [2.0]]), None, np.array([[1.5], [5.0]]))
    assert [(w.row, w.label, w.predicted, w.loss) for w in wrong] == [
        (0, 1.5, 1.0, 0.25),
        (1, 5.0, 2.0, 9.0),
    ]
    assert wrong[0].probability is None


def test_attributes_without_missing_labels():
    labels = AttributeLabels({"size": ["s", "l"], "season": ["hot", "cold"]})
    logits = np.array([[0.0, 1.0, 3.0, 0.0], [1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 1.0]])
    wrong = AttributeAnswers(labels).inspect(logits, None, np.array([[0, 0], [-1, 0], [0, 1]]))
    found = [(w.row, w.label, w.predicted, round(w.loss, 4)) for w in wrong]
    assert found == [
        (0, "size=s", "size=l", round(np.log(1 + np.e), 4)),
        (2, "size=s", "size=l", round(np.log(1 + np.e), 4)),
        (1, "season=hot", "season=cold", round(np.log(1 + np.e**2), 4)),
    ]


@pytest.mark.parametrize("missing", [-1, -100])
def test_packed_tokens_without_a_label(missing):
    logits = np.array([[[0.0, 2.0], [3.0, 0.0], [0.0, 1.0]]])
    packed = types.SimpleNamespace(is_packed=True)
    wrong = WordAnswers(Tags(["O", "B-PER"])).inspect(logits, packed, np.array([[0, missing, 1]]))
    assert [(w.row, w.place, w.label, w.predicted) for w in wrong] == [(0, 0, "O", "B-PER")]


@pytest.mark.parametrize("task", ["words", "chains"])
def test_words(task):
    model, _ = make_task(task, "SegmentPacker")
    randomize(model)
    names = model.label_names
    rows = [["the", "good", "​", "film"], ["a", "plot"]]
    labels = [[names[0], names[1], names[0], names[1]], [names[1], names[0]]]
    wrong = model.inspect(rows, labels)
    tags = model.predict_tags(rows, verbose=0)
    probabilities = model.predict_probabilities(rows, verbose=0)
    wanted = {
        (r, i): (tags[r][i], probabilities[r][i][names.index(label)])
        for r, row in enumerate(labels)
        for i, label in enumerate(row)
        if tags[r][i] != label and rows[r][i] != "​"
    }
    assert {(w.row, w.place) for w in wrong} == {*wanted} != set()
    for w in wrong:
        predicted, probability = wanted[w.row, w.place]
        assert (w.word, w.label) == (rows[w.row][w.place], labels[w.row][w.place])
        assert w.predicted == predicted
        assert w.label_probability == pytest.approx(probability, rel=1e-4)
        assert w.texts == (("the good ​ film", "a plot")[w.row],)
    assert [w.loss for w in wrong] == sorted((w.loss for w in wrong), reverse=True)


class Echo:
    """A task that learns each label of a text by heart, and finds the others wrong."""

    trained = []
    sizes = []
    held_out = []

    def fit(self, x, y, batch_size, **fit):
        self.known = {*x[0]}
        self.sizes.append(batch_size)
        self.trained.append((len(y), y.count("yes"), fit))

    def inspect(self, x, y, batch_size):
        assert not self.known & {*x[0]}, "a row is held out or trained on, not both"
        self.sizes.append(batch_size)
        self.held_out.append({*x[0]})
        return [
            WrongAnswer(i, (), label, "", 0.5, 0.5, float(text))
            for i, (text, label) in enumerate(zip(x[0], y, strict=True))
        ]


def test_each_row_is_answered_by_a_task_that_has_not_seen_it():
    numbers, labels = [str(i) for i in range(22)], ["yes"] * 5 + ["no"] * 17
    wrong = kbs.inspect_by_folds(Echo, (numbers, numbers), labels, 5, epochs=2)
    assert [w.row for w in wrong] == list(range(22))[::-1], "by loss, and each row once"
    assert [w.label for w in wrong] == labels[::-1]
    # Each fold has one of the five rows with "yes".
    assert [yes for _, yes, _ in Echo.trained] == [4] * 5
    assert {rows for rows, _, _ in Echo.trained} == {17, 18}
    assert Echo.trained[0][2] == {"epochs": 2}
    for seed in (0, 7):
        Echo.sizes.clear()
        Echo.held_out.clear()
        kbs.inspect_by_folds(Echo, (numbers, numbers), labels, 5, seed=seed, batch_size=3)
        fold_of = deal_into_folds((numbers, numbers), labels, 5, seed)
        folds = [{str(i) for i in np.flatnonzero(fold_of == fold)} for fold in range(5)]
        assert Echo.held_out == folds and Echo.sizes == [3] * 10
    table = pandas.DataFrame({"size": labels, "season": labels})
    folds = deal_into_folds({"text": numbers}, table, 5, seed=0)
    assert np.bincount(folds).tolist() == [5, 5, 4, 4, 4]
    with pytest.raises(ValueError, match="folds=5 needs at least as many rows, got 4"):
        kbs.inspect_by_folds(Echo, numbers[:4], labels[:4])


@pytest.mark.parametrize("x", [TEXTS[:9], (TEXTS, TEXTS[:9])])
def test_folds_of_other_rows_than_labels_are_refused(x):
    """Rows that were left out of the texts alone would shift the labels."""
    with pytest.raises(ValueError, match="the same number of rows, got .*9 and 20 rows"):
        deal_into_folds(x, LABELS, 2, seed=0)


def test_the_answer_need_not_be_the_most_probable_class():
    """A class of a user says in one method which class is the answer."""

    class LeastProbable(ClassAnswers):
        def choose(self, outputs):
            return outputs.argmin(axis=-1)

    answers = LeastProbable(Classes(["a", "b"]), are_logits=False)
    outputs, labels = np.array([[0.3, 0.7], [0.8, 0.2]]), np.array([0, 0])
    assert answers.name(outputs, None) == ["a", "b"]
    assert answers.score(outputs, None, labels)["accuracy"] == 0.5
    [wrong] = answers.inspect(outputs, None, labels)
    assert (wrong.row, wrong.predicted, wrong.probability) == (1, "b", 0.2)
