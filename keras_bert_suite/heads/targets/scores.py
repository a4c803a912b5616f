"""Scores texts that a model has written, by the words that they share with reference texts."""

import collections
import functools
import re

from keras_bert_suite.data.score_counts import check_scored, score_counts
from keras_bert_suite.tokenizers.joining import WITHOUT_SPACES, is_without_spaces
from keras_bert_suite.tokenizers.unicode_rules import CJK, python_class

#: The scores in percent that `score_targets` gives.
SCORES = ("rouge_1", "rouge_2", "rouge_l", "exact_match")


def score_targets(references, predictions):
    """Scores a prediction for each reference by ROUGE, and by exact match.

    ROUGE-1 and ROUGE-2 count the words, and the pairs of neighbouring words, that both texts have.
    ROUGE-L counts the words of their longest common subsequence. Each is the F1 of a row, and the
    score is the mean over the rows. Words are compared in lower case and without punctuation. A
    Chinese character is a word. Exact match compares texts without surplus spaces, and capitals
    count, which a tokenizer that lowercases never writes. In a reference without spaces between
    words, such as a Chinese one, spaces count only between words of other scripts.

    >>> score_targets(["police killed the gunman"], ["police kill the gunman"])["rouge_l"]
    75.0
    >>> score_targets(["在 IBM 工作3.5年"], ["在IBM工作3. 5年"])["exact_match"]
    100.0

    Args:
        references: list of N str.
        predictions: list of N str.

    Returns:
        dict: `rouge_1`, `rouge_2`, `rouge_l` and `exact_match` in percent, and `rows`.

    Raises:
        ValueError: if the numbers of rows differ or are 0; if a str stands for a list.

    Source: Lin, 2004, "ROUGE: A package for automatic evaluation of summaries". There is no
    stemming. Google's rouge_score drops all letters outside of ASCII.
    """
    check_scored(references, predictions)
    rows = [_score(*pair) for pair in zip(references, predictions, strict=True)]
    totals = map(sum, zip(*rows, strict=True))
    means = {name: 100 * total / len(rows) for name, total in zip(SCORES, totals, strict=True)}
    return {**means, "rows": len(rows)}


def split_words(text):
    """The words that ROUGE compares.

    >>> split_words("The U.S. army, 中国")
    ['the', 'u', 's', 'army', '中', '国']
    """
    return _word_pattern().findall(text.lower())


def measure_common_subsequence(first, second):
    """The length of the longest common subsequence of two lists of words.

    >>> measure_common_subsequence(["the", "gunman", "kill"], ["kill", "the", "gunman"])
    2
    """
    lengths = [0] * (len(second) + 1)  # of the words of `first` so far, and each beginning
    for word in first:
        before = lengths
        lengths = [0]
        for place, other in enumerate(second):
            same = word == other
            lengths.append(before[place] + 1 if same else max(before[place + 1], lengths[place]))
    return lengths[-1]


def _score(reference, prediction):
    """The `SCORES` of a row, each from 0 to 1."""
    wanted, written = split_words(reference), split_words(prediction)
    return (
        _compare_ngrams(wanted, written, 1),
        _compare_ngrams(wanted, written, 2),
        score_counts(measure_common_subsequence(wanted, written), len(written), len(wanted))["f1"],
        float(_matches(reference, prediction)),
    )


def _matches(reference, prediction):
    """Whether two texts are equal but for spaces that mean nothing."""
    texts = [" ".join(text.split()) for text in (reference, prediction)]
    if is_without_spaces(reference):
        texts = [_space_pattern().sub("", text) for text in texts]
    return texts[0] == texts[1]


def _compare_ngrams(wanted, written, size):
    """The F1 of the n-grams of words, n = `size`."""
    ngrams = [
        collections.Counter(zip(*(words[i:] for i in range(size)), strict=False))
        for words in (wanted, written)
    ]
    common = (ngrams[0] & ngrams[1]).total()
    return score_counts(common, ngrams[1].total(), ngrams[0].total())["f1"]


@functools.cache
def _word_pattern():
    cjk = python_class(CJK)
    return re.compile(rf"[{cjk}]|[^\W_{cjk}]+")


@functools.cache
def _space_pattern():
    """A space that is not between two words of a script with spaces."""
    letter = rf"[^\W_{python_class(WITHOUT_SPACES)}]"
    return re.compile(f"(?<!{letter}) | (?!{letter})")
