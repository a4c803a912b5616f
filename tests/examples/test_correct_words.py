"""examples/correct_words.py, with a model that guesses the same words in each place."""

import math
import runpy
import types
from pathlib import Path

import numpy as np
import pytest
from small_texts import VOCABULARY

import keras_bert_suite as kbs

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "correct_words.py"


@pytest.fixture(scope="module")
def names():
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("word", "other", "is_edit"),
    [
        *(("good", "god", True), ("good", "goodd", True), ("good", "gold", True)),
        *(("good", "ogod", True), ("good", "gdoo", False), ("good", "goo", True)),
        *(("good", "gild", False), ("a", "b", True), ("ab", "ba", True), ("good", "goodly", False)),
    ],
)
def test_one_edit(names, word, other, is_edit):
    assert names["is_one_edit"](word, other) == names["is_one_edit"](other, word) == is_edit


class Model:
    preprocessor = types.SimpleNamespace(tokenizer=kbs.WordPieceTokenizer(VOCABULARY))

    def predict(self, texts, **kwargs):
        return [[[("good", 0.5), ("film", 0.3), ("the", 0.01)]] for _ in texts]


def test_better_words(names):
    found = names["find_better_words"](Model(), ["The flim, god"], names["CANDIDATES"]["edit"])
    # A word that is not among the guesses is as probable as the last one.
    assert found == [
        [(4, "flim", "film", pytest.approx(math.log(30))), (10, "god", "good", math.log(50))]
    ]
    found = names["find_better_words"](Model(), ["good the"], names["CANDIDATES"]["any"])
    assert found == [[(5, "the", "good", math.log(50))]]


def test_half_of_the_texts_get_an_error_that_is_counted(names):
    texts = [f"w{'ab' * 3} x{i}" for i in range(100)]
    wrong, truth = names["make_errors"](texts, "edit", np.random.default_rng(0))
    changed = [i for i in range(100) if wrong[i] != texts[i]]
    assert 35 < len(changed) < 65
    assert changed == [i for i in range(100) if truth[i] is not None]
    found = [[] for _ in texts]
    right, misplaced, *_ = changed
    found[right] = [(*truth[right][:1], "", truth[right][1].lower(), 5.0), (99, "", "x", 0.5)]
    found[misplaced] = [(99, "", "x", 5.0)]
    figures = names["measure"](found, truth, 1)
    assert figures == [1 / 2, 1 / len(changed), 1 / 2, 1 / len(changed)]
