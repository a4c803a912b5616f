"""Computes exact match and F1 of answers, as the official scripts of SQuAD do.

Source: evaluate-v1.1.py and evaluate-v2.0.py of https://rajpurkar.github.io/SQuAD-explorer.
"""

import collections
import re
import string

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def score_answers(references, predictions):
    """Scores a prediction for each question.

    Before answers are compared, they are lower-cased, and ASCII punctuation, the words "a", "an"
    and "the", and surplus spaces are removed. If a question has several accepted answers, the
    highest score counts.

    >>> score_answers([["The Broncos!", "Denver Broncos"]], ["broncos"])["exact_match"]
    100.0

    Args:
        references: list of N lists of str, the accepted answers; an empty list for a question
            without an answer.
        predictions: list of N str; "" for no answer.

    Returns:
        dict: `exact_match` and `f1` in percent, `questions`; and, if there are questions with and
        without an answer, `has_answer` and `no_answer`, dicts of the same three for each kind.

    Raises:
        ValueError: if the numbers of rows differ.
    """
    scores = np.array(
        [
            _score(answers, prediction)
            for answers, prediction in zip(references, predictions, strict=True)
        ]
    )
    answerable = np.array([bool(len(answers)) for answers in references])
    totals = _average(scores)
    if answerable.any() and not answerable.all():
        totals["has_answer"] = _average(scores[answerable])
        totals["no_answer"] = _average(scores[~answerable])
    return totals


def find_threshold(references, predictions, null_odds):
    """Finds the threshold of `null_odds` that gives the highest F1.

    Args:
        references: as for `score_answers`.
        predictions: list of N str, the best text of each context, also where "no answer" is better.
        null_odds: float (N,), the score of "no answer" minus the score of the prediction.

    Returns:
        float. A question has no answer if its `null_odds` are above the threshold. It lies midway
        between the `null_odds` of two questions, or 1 below or above all of them.
    """
    odds = np.asarray(null_odds, "float64")
    order = np.argsort(odds, kind="stable")
    # The F1 that each question gains if it gets its prediction, and not "no answer".
    gains = np.array(
        [
            _score(references[row], predictions[row])[1] - _score(references[row], "")[1]
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


def _score(references, prediction):
    """(exact match, F1), each from 0 to 1, of a prediction."""
    # An answer that is empty after normalization counts as no answer.
    references = [text for text in references if normalize_answer(text)] or [""]
    return tuple(
        max(compare(reference, prediction) for reference in references)
        for compare in (_match_exactly, _compute_f1)
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


def _average(scores):
    exact_match, f1 = 100 * scores.mean(axis=0)
    return {"exact_match": float(exact_match), "f1": float(f1), "questions": len(scores)}
