"""Scores of relations against what the official scorer of SemEval 2010 task 8 has printed."""

import numpy as np
import pytest

from keras_bert_suite.heads.relations.scores import score_relations

RELATIONS = (
    "Cause-Effect Component-Whole Content-Container Entity-Destination Entity-Origin "
    "Instrument-Agency Member-Collection Message-Topic Product-Producer"
).split()
NAMES = [f"{name}({way})" for way in ("e1,e2", "e2,e1") for name in RELATIONS] + ["Other"]
OTHER = NAMES.index("Other")

#: The confusion matrix of a run that semeval2010_task8_scorer-v1.2.pl has scored, and its figures.
#: It has a row for each true relation, and no prediction is "Other". All have one direction.
CONFUSIONS = """
307 2 0 2 4 0 1 7 3
2 239 5 1 3 12 20 9 11
0 7 160 11 3 0 1 1 0
1 2 14 271 1 0 0 0 3
3 4 3 9 219 3 2 1 7
3 14 0 5 3 102 1 2 26
1 4 1 3 3 0 207 1 6
1 6 1 1 3 1 2 236 10
9 10 0 3 7 19 3 6 168
43 67 31 84 49 12 42 68 54
"""
F1 = [88.22, 72.75, 80.40, 79.47, 80.22, 66.89, 81.98, 79.73, 65.50]
MICRO_PRECISION, MICRO_RECALL, MICRO_F1, MACRO_F1 = 71.44, 85.91, 78.01, 77.24


def make_rows():
    wanted, predicted = [], []
    for row, line in enumerate(CONFUSIONS.split("\n")[1:-1]):
        for column, count in enumerate(map(int, line.split())):
            wanted += [OTHER if row == len(RELATIONS) else row] * count
            predicted += [column] * count
    return np.array(wanted), np.array(predicted)


def test_a_run_that_the_official_scorer_has_scored():
    scores = score_relations(*make_rows(), NAMES)
    assert list(scores["relations"]) == RELATIONS
    found = [100 * part["f1"] for part in scores["relations"].values()]
    np.testing.assert_allclose(found, F1, atol=0.005)
    for name, wanted in (
        ("macro_f1", MACRO_F1),
        ("micro_precision", MICRO_PRECISION),
        ("micro_recall", MICRO_RECALL),
        ("micro_f1", MICRO_F1),
        ("accuracy", 100 * 1909 / 2672),
    ):
        assert 100 * scores[name] == pytest.approx(wanted, abs=0.005), name


def transcribe(wanted, predicted):
    """The rule of the scorer, (iii): a wrong direction is out of the matrix, and in both sums."""

    def split(label):
        return label.partition("(")[0], label

    f1 = []
    for relation in {split(label)[0] for label in wanted} - {"Other"}:
        right = proposed = actual = wrong_direction = 0
        for key, answer in zip(wanted, predicted, strict=True):
            same = split(key)[0] == split(answer)[0]
            if same and key != answer:
                wrong_direction += split(key)[0] == relation
                continue
            right += same and split(key)[0] == relation
            proposed += split(answer)[0] == relation
            actual += split(key)[0] == relation
        actual += wrong_direction
        precision = right / (proposed + wrong_direction) if proposed + wrong_direction else 0
        recall = right / actual if actual else 0
        f1.append(2 * precision * recall / (precision + recall) if precision + recall else 0)
    return np.mean(f1)


@pytest.mark.parametrize("seed", range(5))
def test_directions(seed):
    rng = np.random.default_rng(seed)
    wanted, predicted = rng.integers(0, 19, (2, 60))
    predicted = np.where(rng.random(60) < 0.5, wanted, predicted)
    predicted = np.where(rng.random(60) < 0.3, (wanted + 9) % 18, predicted)
    # A relation that is predicted, and that no row has.
    wanted = np.where(wanted % 9 == seed, OTHER, wanted)
    scores = score_relations(wanted, predicted, NAMES)
    labels = [[NAMES[i] for i in ids] for ids in (wanted, predicted)]
    assert scores["macro_f1"] == pytest.approx(transcribe(*labels))


def test_other_names():
    """Labels without directions, another name for no relation, and no relation at all."""
    names = ["none", "lives in", "works for"]
    scores = score_relations([1, 1, 0, 2], [1, 0, 2, 2], names, other="none")
    assert scores["relations"]["lives in"]["f1"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx(2 / 3) and scores["micro_f1"] == pytest.approx(2 / 3)
    assert score_relations([0], [1], names, other="none")["macro_f1"] == 0.0
