"""Rows are dealt into folds, and each is answered by the task that has not seen it."""

import dataclasses
import itertools

import keras
import numpy as np
import pandas as pd
import pytest
from heads.cases import CASES
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold
from small_tasks import make_parts, make_task
from small_texts import make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.heads.base.folds import deal_into_folds

TEXTS, LABELS = make_reviews(24)


def deal(labels, folds, seed=0, groups=None, are_classes=True):
    return deal_into_folds([""] * len(labels), labels, folds, seed, groups, are_classes)


def peer_folds(splitter, labels, groups=None):
    fold_of = np.empty(len(labels), int)
    for fold, (_, held_out) in enumerate(splitter.split(labels, labels, groups)):
        fold_of[held_out] = fold
    return fold_of


def count(fold_of, labels):
    """int (folds, classes), the rows of each class in each fold."""
    return np.array([[np.sum(labels[fold_of == f] == c) for c in np.unique(labels)]
                     for f in np.unique(fold_of)])  # fmt: skip


@pytest.mark.parametrize("folds", [2, 3, 7])
def test_the_mix_of_labels_is_that_of_stratified_folds(folds):
    labels = np.random.default_rng(1).choice(["a", "b", "c"], 100, p=[0.6, 0.3, 0.1])
    counts = count(deal(labels, folds), labels)
    peer = count(peer_folds(StratifiedKFold(folds, shuffle=True, random_state=0), labels), labels)
    assert (np.sort(counts, axis=0) == np.sort(peer, axis=0)).all()
    assert np.ptp(counts.sum(axis=1)) <= 1
    assert (deal(labels, folds, seed=1) != deal(labels, folds)).any()
    assert (deal(labels, folds) == deal(labels, folds)).all()


def test_numbers_are_spread_over_the_folds():
    numbers = np.random.default_rng(0).normal(size=50)
    fold_of = deal(numbers, 5, are_classes=False)
    ranks = np.argsort(np.argsort(numbers)) // 5
    assert all(len({*ranks[fold_of == fold]}) == 10 for fold in range(5))
    assert np.ptp(np.bincount(deal(numbers, 5, are_classes=None))) == 0


def test_one_hot_labels_are_classes():
    ids = np.arange(30) % 3
    assert (count(deal(np.eye(3)[ids], 5), ids) == 2).all()


@pytest.mark.parametrize("labelled", [True, False])
def test_groups_stay_together(labelled):
    rng = np.random.default_rng(2)
    groups = rng.choice(40, 300, p=np.arange(40) / 780)
    labels = (rng.random(300) < groups / 40).astype(int)
    if labelled:
        fold_of, peer = deal(labels, 5, groups=groups), StratifiedGroupKFold(5)
    else:
        fold_of = deal_into_folds([""] * 300, None, 5, 0, [f"g{i}" for i in groups])
        peer = GroupKFold(5)
    assert all(len({*fold_of[groups == group]}) == 1 for group in np.unique(groups))

    def find_spread(fold_of):
        if not labelled:
            return np.ptp(np.bincount(fold_of))
        counts = count(fold_of, labels)
        return (counts / counts.sum(axis=0)).std(axis=0).mean()

    assert find_spread(fold_of) <= find_spread(peer_folds(peer, labels, groups)) * 1.1
    assert {*fold_of} == set(range(5))


def test_folds_that_cannot_be_dealt():
    labels = ["a"] * 9 + ["b"] * 3 + ["c"]
    with pytest.raises(ValueError, match=r"The label 'c' has 1 row, and each of folds=4 needs one"):
        deal(labels, 4)
    with pytest.raises(ValueError, match=r"'b' has 3 rows, .*Pass folds=3, join the label"):
        deal(labels[:12], 4)
    with pytest.raises(ValueError, match="folds=5 needs at least as many groups, got 2"):
        deal(["a"] * 9, 5, groups=[0, 1, 1] * 3)
    with pytest.raises(ValueError, match="groups must have a value for each row, got 2 for 9"):
        deal(["a"] * 9, 5, groups=[0, 1])
    with pytest.raises(ValueError, match="groups must be a column .*, got 'author'. Pass"):
        deal(["a"] * 9, 5, groups="author")
    for lists in ([[1], [2]] * 4, [[1], [2, 3]] * 4, np.eye(8)):
        with pytest.raises(ValueError, match="group of a row must be one value, .* at row 0"):
            deal(["a"] * 8, 2, groups=lists)
    for missing in (None, float("nan"), pd.NaT, pd.NA):
        with pytest.raises(ValueError, match="Row 4 has no group, got .*leave these rows out"):
            deal(["a"] * 9, 2, groups=[0, 1, 0, 1, missing, missing, 0, 1, 0])
    days = np.array(["2026-01-01", "NaT", "2026-01-02"], "datetime64[D]")
    with pytest.raises(ValueError, match="Row 1 has no group, got .*NaT"):
        deal(["a"] * 3, 2, groups=days)
    with pytest.raises(ValueError, match="Row 0 has no group, got .*nan"):
        deal(["a"] * 12, 2, groups=[float("nan")] * 12)
    with pytest.raises(ValueError, match="Row 1 has no group, got None"):
        deal(["a"] * 3, 2, groups=["ann", None, "bob"])
    with pytest.raises(ValueError, match="All 4 rows of the label 'b' are in groups of fold"):
        deal(["a"] * 8 + ["b"] * 4, 2, groups=[0] * 4 + [1] * 4 + [2] * 4)


def make_classifier():
    backbone, packer = make_parts("SegmentPacker", {})
    names = ["no", "yes"]
    task = kbs.TextClassifier(backbone, label_names=names, preprocessor=packer, dropout=0.0)
    task.compile(kbs.AdamW(1e-2))
    return task


def test_each_row_is_answered_by_the_task_that_has_not_seen_it():
    weights = np.linspace(0.5, 2, 24)
    run = {"folds": 3, "seed": 4, "epochs": 1, "verbose": 0, "sample_weight": weights}
    keras.utils.set_random_seed(0)
    ensemble, held_out = kbs.fit_folds(make_classifier, TEXTS, LABELS, **run)
    fold_of = held_out.fold_of
    assert (fold_of == deal_into_folds(TEXTS, LABELS, 3, 4)).all()
    assert len(ensemble.tasks) == 3 and ensemble.weights == pytest.approx([1 / 3] * 3)
    for fold, task in enumerate(ensemble.tasks):
        own = np.flatnonzero(fold_of == fold)
        texts, labels = [TEXTS[i] for i in own], [LABELS[i] for i in own]
        wanted = task.predict_probabilities(texts, verbose=0)
        np.testing.assert_allclose(np.exp(held_out.predictions[own]), wanted, atol=1e-6)
        assert held_out.scores[fold] == task.score(texts, labels)
    keras.utils.set_random_seed(0)
    wrong = kbs.inspect_by_folds(make_classifier, TEXTS, LABELS, **run)
    assert len(wrong) == len(held_out.wrong) > 0
    for ours, theirs in zip(held_out.wrong, wrong, strict=True):
        assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)
        numbers = {name: getattr(theirs, name) for name in ("probability", "label_probability")}
        assert dataclasses.replace(ours, loss=theirs.loss, **numbers) == theirs


@pytest.mark.parametrize("name", ["words", "attributes", "rankings", "questions"])
def test_other_heads(name):
    case = CASES[name]

    def make():
        task, _ = make_task(name)
        task.compile(**case.compiled)
        return task

    labels = case.labels
    if name == "attributes":
        labels = {key: [value or "yes" for value in column] for key, column in labels.items()}
        labels["length"] = [int(value == "yes") for value in labels["length"]]
    ensemble, held_out = kbs.fit_folds(make, case.rows, labels, 2, epochs=1, verbose=0)
    assert len(held_out.scores) == len(ensemble.tasks) == 2
    assert (held_out.predictions is None) == (name == "rankings")
    assert (held_out.wrong is None) == (name in ("rankings", "questions"))
    if name == "words":
        row = int(np.flatnonzero(held_out.fold_of == 1)[0])
        wanted = ensemble.tasks[1].predict([case.rows[row]], verbose=0)
        assert [e.text for e in held_out.predictions[row]] == [e.text for e in wanted[0]]


def test_a_task_that_has_seen_all_rows_is_refused():
    task, known = make_classifier(), itertools.repeat(None)
    with pytest.raises(ValueError, match="make_task must be a function .*, got a TextClassifier"):
        kbs.fit_folds(task, TEXTS, LABELS, 2)
    with pytest.raises(ValueError, match="seed must be an integer of at least 0, got 'x'"):
        kbs.fit_folds(make_classifier, TEXTS, LABELS, 2, seed="x")
    with pytest.raises(ValueError, match="make_task must return a new .*, got a NoneType. End"):
        kbs.fit_folds(lambda: None, TEXTS, LABELS, 2)
    with pytest.raises(ValueError, match="the same number of rows, got .* and 7 rows"):
        kbs.fit_folds(make_classifier, TEXTS, LABELS, 2, sample_weight=np.ones(7))
    with pytest.raises(ValueError, match="a column with a value for each row, got 3. Repeat"):
        kbs.fit_folds(make_classifier, TEXTS, LABELS, 2, sample_weight=3)
    with pytest.raises(ValueError, match="make_task has returned one task twice"):
        kbs.fit_folds(lambda: next(known) or task, TEXTS, LABELS, 2, epochs=1, verbose=0)
