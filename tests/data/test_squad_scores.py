import numpy as np
import pytest

from keras_bert_suite.data.squad_scores import find_threshold, normalize_answer, score_answers


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The  U.S. Army!", "us army"),
        ("a\tthe an", ""),
        ("then another", "then another"),
        ("Theory-of-a-mind", "theoryofamind"),
        ("«the» “word”", "« » “word”"),  # Only the punctuation of ASCII is dropped.
        ("1,000", "1000"),
    ],
)
def test_normal_form(text, wanted):
    assert normalize_answer(text) == wanted


@pytest.mark.parametrize(
    ("references", "prediction", "exact_match", "f1"),
    [
        (["Denver Broncos"], "the Denver Broncos", 100, 100),
        (["Denver Broncos"], "Broncos", 0, 100 * 2 / 3),
        (["Denver Broncos", "Broncos."], "Broncos", 100, 100),
        (["a b b c"], "b b b", 0, 100 * 4 / 6),  # "a" is an article; "b" is common twice
        (["Denver"], "Carolina", 0, 0),
        (["Denver"], "", 0, 0),
        ([], "", 100, 100),
        ([], "Denver", 0, 0),
        (["the"], "", 100, 100),
        ([], "a", 100, 100),
    ],
)
def test_one_question(references, prediction, exact_match, f1):
    scores = score_answers([references], [prediction])
    assert scores == {"exact_match": exact_match, "f1": pytest.approx(f1), "questions": 1}


def test_kinds_of_questions():
    scores = score_answers([["x y"], ["z"], []], ["x", "z", "w"])
    assert scores["exact_match"] == pytest.approx(100 / 3)
    assert scores["f1"] == pytest.approx(100 * (2 / 3 + 1) / 3)
    assert scores["has_answer"]["exact_match"] == 50 and scores["has_answer"]["questions"] == 2
    assert scores["no_answer"] == {"exact_match": 0, "f1": 0, "questions": 1}
    with pytest.raises(ValueError, match="argument 2 is longer"):
        score_answers([[]], ["a", "b"])


@pytest.mark.parametrize("seed", range(5))
def test_threshold_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    references = [["a b c"] if answerable else [] for answerable in rng.random(40) < 0.6]
    predictions = rng.choice(["b c", "c", "d"], 40).tolist()
    odds = rng.integers(-4, 5, 40).astype("float64")  # some are equal

    def score(threshold):
        kept = [
            "" if null > threshold else text for text, null in zip(predictions, odds, strict=True)
        ]
        return score_answers(references, kept)["f1"]

    threshold = find_threshold(references, predictions, odds)
    assert score(threshold) == pytest.approx(max(map(score, np.arange(-6, 7) + 0.5)))
    assert abs(odds - threshold).min() > 0.1


def test_threshold_beyond_all_questions():
    assert find_threshold([[], []], ["a", "b"], [1.0, 3.0]) == 0
    assert find_threshold([["a"], ["b"]], ["a", "b"], [1.0, 3.0]) == 4
