import numpy as np
import pytest

from keras_bert_suite.heads.questions.scores import find_threshold, normalize_answer, score_answers


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
    with pytest.raises(ValueError, match="got 2 predictions for 1 rows"):
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


@pytest.mark.parametrize(
    ("references", "prediction", "exact_match", "f1"),
    [
        (["丹佛野马队"], "野马队。", 0, 75),
        (["丹佛野马队", "野马"], "野马", 100, 100),
        (["一九九〇年"], "一九九零年", 0, 60),  # 〇 is no Chinese character of the script.
        (["他在IBM工作"], "在ibm", 0, 57.1428571429),
        (["他在IBM工作"], "在IBM公司", 0, 44.4444444444),
        (["1,000多人"], "1000多人", 0, 66.6666666667),
        (["1,000多人"], "1,000 多人", 0, 100),
        (["U.S. Army"], "us army", 0, 50),
        (["《红楼梦》"], "红楼梦", 100, 100),
        (["红楼梦……"], "红楼梦", 0, 85.7142857143),
        (["红楼梦"], "", 0, 0),
        (["日本のSONY株"], "のSONY", 0, 40),
        (['"House Blend"'], "House Blend", 0, 66.6666666667),
        (["it's (really) so."], "it's so", 0, 40),
        (["北京市海淀区中关村"], "海淀中关村", 0, 42.8571428571),
        (["北京市海淀区中关村"], "京市海淀区中关村", 0, 94.1176470588),
        (["a-b"], "ab", 100, 100),
        (["45%"], "45 %", 0, 100),
        (["。"], "。", 100, 0),
        (["don't know"], "do not know", 0, 33.3333333333),
    ],
)
def test_chinese_characters(references, prediction, exact_match, f1):
    """The right values are those of cmrc2018_evaluate.py with NLTK 3.10."""
    for characters in (True, "cmrc2018"):
        scores = score_answers([references], [prediction], characters)
        wanted = pytest.approx(f1, abs=1e-9)
        assert scores == {"exact_match": exact_match, "f1": wanted, "questions": 1}


@pytest.mark.parametrize(
    ("references", "prediction", "exact_match", "f1"),
    [
        (["교향곡"], "교향곡을", 0, 85.7142857143),
        (["《교향곡》"], "교향곡", 100, 100),
        (["파우스트 서곡"], "서곡 파우스트", 0, 100),
        (["파우스트 서곡"], "파우스트서곡", 0, 100),
        (["1839년", "1839"], "1839년에", 0, 90.9090909091),
        (["‘라’ 단조"], "라 단조", 100, 100),
        (["바그너"], "괴테", 0, 0),
        (["a the b"], "a b", 0, 57.1428571429),  # Articles count.
        (["!"], "", 100, 0),
    ],
)
def test_korean_characters(references, prediction, exact_match, f1):
    """The right values are those of evaluate-v1.0.py of KorQuAD."""
    scores = score_answers([references], [prediction], "korquad")
    wanted = pytest.approx(f1, abs=1e-9)
    assert scores == {"exact_match": exact_match, "f1": wanted, "questions": 1}


def test_no_answer_and_thresholds_by_characters():
    scores = score_answers([["红楼梦"], []], ["红楼", ""], True)
    assert scores["has_answer"]["f1"] == pytest.approx(80) and scores["no_answer"]["f1"] == 100
    # By words the first prediction would gain nothing.
    arguments = ([["红楼梦"], []], ["红楼", "红楼"], [1.0, 3.0])
    assert find_threshold(*arguments) == 0 and find_threshold(*arguments, True) == 2
    with pytest.raises(ValueError, match="characters must be one of .* got 'drcd'"):
        score_answers([["a"]], ["a"], "drcd")
