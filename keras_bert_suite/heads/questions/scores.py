"""Computes exact match and F1 of answers, as the official scripts of SQuAD do, or by characters.

Source: evaluate-v1.1.py and evaluate-v2.0.py of https://rajpurkar.github.io/SQuAD-explorer.
"""

import collections
import re
import string

import numpy as np

from keras_bert_suite.data.score_counts import check_scored
from keras_bert_suite.heads.questions.character_scores import (
    compute_chinese_f1,
    compute_korean_f1,
    match_chinese,
    match_korean,
)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score_answers(references, predictions, characters=False):
    """Scores a prediction for each question.

    If a question has several accepted answers, the highest score counts. Before answers are
    compared by words, they are lower-cased, and ASCII punctuation, the words "a", "an" and "the",
    and surplus spaces are removed. This finds no words in languages without spaces.

    >>> score_answers([["The Broncos!", "Denver Broncos"]], ["broncos"])["exact_match"]
    100.0
    >>> score_answers([["丹佛野马队"]], ["野马队。"], characters=True)["f1"]
    75.0

    Args:
        references: list of N lists of str, the accepted answers; an empty list for a question
            without an answer.
        predictions: list of N str; "" for no answer.
        characters: False compares words, as SQuAD does. True or "cmrc2018" compares Chinese
            characters, as the official script of CMRC 2018, which is also used for DRCD.
            "korquad" compares the characters of Korean, as the official script of KorQuAD 1.0.

    Returns:
        dict: `exact_match` and `f1` in percent, `questions`; and, if there are questions with and
        without an answer, `has_answer` and `no_answer`, dicts of the same three for each kind.

    Raises:
        ValueError: if the numbers of rows differ, or `characters` has another value.
    """
    rule = _find_rule(characters)
    check_scored(references, predictions)
    scores = np.array(
        [
            _score(answers, prediction, rule)
            for answers, prediction in zip(references, predictions, strict=True)
        ]
    )
    answerable = np.array([bool(len(answers)) for answers in references])
    totals = _average(scores)
    if answerable.any() and not answerable.all():
        totals["has_answer"] = _average(scores[answerable])
        totals["no_answer"] = _average(scores[~answerable])
    return totals


def find_threshold(references, predictions, null_odds, characters=False):
    """Finds the threshold of `null_odds` that gives the highest F1.

    Args:
        references, characters: as for `score_answers`.
        predictions: list of N str, the best text of each context, also where "no answer" is better.
        null_odds: float (N,), the score of "no answer" minus the score of the prediction.

    Returns:
        float. A question has no answer if its `null_odds` are above the threshold. It lies midway
        between the `null_odds` of two questions, or 1 below or above all of them.
    """
    odds = np.asarray(null_odds, "float64")
    order, rule = np.argsort(odds, kind="stable"), _find_rule(characters)
    # The F1 that each question gains if it gets its prediction, and not "no answer".
    gains = np.array(
        [
            _score(references[row], predictions[row], rule)[1]
            - _score(references[row], "", rule)[1]
            for row in order
        ]
    )
    odds = odds[order]
    totals = np.concatenate([[0], np.cumsum(gains)])
    bounds = np.concatenate([[odds[0] - 1], (odds[:-1] + odds[1:]) / 2, [odds[-1] + 1]])
    # A threshold cannot separate questions of equal odds.
    separates = np.concatenate([[True], odds[:-1] < odds[1:], [True]])
    best = np.argmax(np.where(separates, totals, -np.inf))
    return float(bounds[best])


def normalize_answer(text):
    """Brings an answer to the form in which answers are compared.

    >>> normalize_answer("The  U.S. army")
    'us army'
    """
    text = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def _score(references, prediction, rule):
    """(exact match, F1), each from 0 to 1, of a prediction. `rule` is one of `_RULES`."""
    if rule is _RULES[False]:
        # An answer that is empty after normalization counts as no answer.
        references = [text for text in references if normalize_answer(text)] or [""]
    if not references:
        return (float(not prediction),) * 2
    return tuple(
        max(compare(reference, prediction) for reference in references) for compare in rule
    )


def _match_exactly(reference, prediction):
    return float(normalize_answer(reference) == normalize_answer(prediction))


def _compute_f1(reference, prediction):
    reference, prediction = (normalize_answer(text).split() for text in (reference, prediction))
    if not reference or not prediction:
        return float(reference == prediction)
    common = sum((collections.Counter(reference) & collections.Counter(prediction)).values())
    # The harmonic mean of precision and recall.
    return 2 * common / (len(reference) + len(prediction))


#: characters -> the functions that compute exact match and F1 of two answers.
_RULES = {
    False: (_match_exactly, _compute_f1),
    True: (match_chinese, compute_chinese_f1),
    "cmrc2018": (match_chinese, compute_chinese_f1),
    "korquad": (match_korean, compute_korean_f1),
}


def _find_rule(characters):
    if characters not in _RULES:
        raise ValueError(
            f"characters must be one of {', '.join(map(repr, _RULES))}, got {characters!r}."
        )
    return _RULES[characters]


def _average(scores):
    exact_match, f1 = 100 * scores.mean(axis=0)
    return {"exact_match": float(exact_match), "f1": float(f1), "questions": len(scores)}
