"""ROUGE, by the examples of its paper and literal cases."""

import pytest

from keras_bert_suite.heads.targets.scores import score_targets, split_words

REFERENCE = "police killed the gunman"


@pytest.mark.parametrize(
    ("prediction", "rouge_2", "rouge_l"),
    [
        # Lin, 2004, sections 2 and 3: the same bigram, and sentences of which one means the same.
        ("police kill the gunman", 100 / 3, 75),
        ("the gunman kill police", 100 / 3, 50),
        ("the gunman police killed", 200 / 3, 50),
        (REFERENCE, 100, 100),
        ("", 0, 0),
    ],
)
def test_the_examples_of_the_paper(prediction, rouge_2, rouge_l):
    scores = score_targets([REFERENCE], [prediction])
    assert scores["rouge_2"] == pytest.approx(rouge_2)
    assert scores["rouge_l"] == pytest.approx(rouge_l)


def test_scores_are_means_of_f1_over_rows():
    scores = score_targets(["a b c d", "X"], ["b b", " x "])
    # One of the two "b" is common: precision 1/2, recall 1/4.
    assert scores == {
        "rouge_1": pytest.approx(50 * (2 / 6 + 1)),
        "rouge_2": 0,
        "rouge_l": pytest.approx(50 * (2 / 6 + 1)),
        "exact_match": 0,
        "rows": 2,
    }
    assert score_targets(["A  title", "B"], ["A title", "b"])["exact_match"] == 50


@pytest.mark.parametrize(
    "reference, prediction, equal",
    [
        ("增长3.5%", "增长3. 5%", True),
        ("他 在 IBM 工作", "他在IBM工作", True),
        ("令x=1+2", "令 x = 1 + 2", True),
        ("iPhone 12评测", "iPhone 12 评测", True),
        # A space between words of other scripts counts, and so does each character.
        ("华为Mate 40发布", "华为Mate40发布", False),
        ("增长3.5%", "增长35%", False),
        ("私は学生です。", "私 は 学生 です 。", True),
        ("an ice cream", "an icecream", False),
        ("x = 1", "x=1", False),
        ("저는 학생", "저는학생", False),
        ("", "", True),
    ],
)
def test_spaces_count_where_the_language_has_them(reference, prediction, equal):
    assert score_targets([reference], [prediction])["exact_match"] == 100 * equal


def test_words():
    assert split_words("Öl_1 - 基于 BERT的") == ["öl", "1", "基", "于", "bert", "的"]
