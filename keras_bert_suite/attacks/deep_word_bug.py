"""Misspells the words that decide, found by the answers to beginnings and ends of a text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import check_choice, check_integer, read_choices
from keras_bert_suite.attacks.attack import Attack, Search
from keras_bert_suite.data.augmentation import split_words
from keras_bert_suite.data.noise.kinds import LETTERS

SCORES = ("combined", "head", "tail", "leave_out")
EDITS = ("swap", "substitute", "delete", "insert")


class DeepWordBug(Attack):
    """Scores each word of a text, and misspells the words in the order of their scores.

    It asks far less than `MisspellingAttack`, two or three times the number of words, so it suits
    long texts and slow models. A misspelling is drawn at random, and changes any letter of a word.

    Args:
        score: "head", by how much the probability of the label grows with the word, when the text
            is read from its beginning to this word; "tail", the same from the word to the end;
            "combined", their mean; or "leave_out", the loss of the text without the word.
        edits: str or list of "swap", "substitute", "delete" and "insert", of which one is drawn for
            each word.
        max_distance: int, the largest edit distance of a changed text; a swap counts as 2. The
            paper has 30.
        max_words: int, the most words that are changed, or None.

    Raises:
        ValueError: for another score or edit, no edit, or a number below 1.

    Source: Gao et al., 2018 (https://arxiv.org/abs/1801.04354), section 3. Its scores and edits
    are these, and its main results have "combined" and "substitute". Unlike there, the text is
    asked for after each word, and the first wrong answer ends the search; "leave_out" leaves the
    word out, where its code puts the unknown token.
    """

    name = "DeepWordBug"

    def __init__(
        self,
        score: str = "combined",
        *,
        edits: str | Sequence[str] = EDITS,
        max_distance: int = 30,
        max_words: int | None = None,
    ) -> None:
        check_choice("score", score, SCORES)
        self.edits = read_choices("edits", edits, EDITS)
        check_integer("max_distance", max_distance, at_least=1)
        if max_words is not None:
            check_integer("max_words", max_words, at_least=1)
        self.score, self.max_distance, self.max_words = score, max_distance, max_words

    def search(
        self,
        text: str,
        label: int,
        probabilities: np.ndarray,
        prepared: Any,
        rng: np.random.Generator,
    ) -> Search:
        parts = split_words(text, None)
        places = range(1, len(parts), 2)
        if not places:
            return text, 0, label
        _, found = yield list_scored_texts(parts, self.score)
        scores = score_words(found[:, label], self.score, found.shape[1])
        most = len(places) if self.max_words is None else self.max_words
        texts, distance = [], 0
        for i in np.argsort(-scores, kind="stable")[:most]:
            word, cost = edit_word(parts[places[i]], self.edits, rng)
            if distance + cost > self.max_distance:
                break
            if word != parts[places[i]]:
                parts[places[i]], distance = word, distance + cost
                texts.append("".join(parts))
        if not texts:
            return text, 0, label
        ids, _ = yield texts
        first = int(np.argmax(ids != label)) if np.any(ids != label) else len(texts) - 1
        return texts[first], first + 1, int(ids[first])


def list_scored_texts(parts: Sequence[str], score: str) -> list[str]:
    """The texts whose answers score the N words of a text: N, or 2 N for "combined".

    `parts` are from `split_words`.
    """
    places = range(1, len(parts), 2)
    heads = ["".join(parts[: place + 1]) for place in places]
    tails = ["".join(parts[place:]) for place in places]
    if score == "leave_out":
        return [leave_out(parts, place) for place in places]
    return {"head": heads, "tail": tails, "combined": heads + tails}[score]


def score_words(likely: np.ndarray, score: str, num_classes: int) -> np.ndarray:
    """float (N,), the score of each word, from the probabilities of the label for its texts."""
    likely = np.asarray(likely, "float64")
    if score == "leave_out":
        return -np.log(np.maximum(likely, np.finfo("float64").tiny))
    if score == "head":
        return np.diff(likely, prepend=1 / num_classes)
    if score == "tail":
        return -np.diff(likely, append=1 / num_classes)
    heads, tails = np.split(likely, 2)
    return (score_words(heads, "head", num_classes) + score_words(tails, "tail", num_classes)) / 2


def edit_word(word: str, edits: Sequence[str], rng: np.random.Generator) -> tuple[str, int]:
    """A word with one edit at a random place, and the edit distance.

    A word of one letter has nothing to swap, and is not deleted: then the distance is 0.
    """
    edit = edits[int(rng.integers(len(edits)))]
    if len(word) == 1 and edit in ("swap", "delete"):
        return word, 0
    place = int(rng.integers(len(word) + {"swap": -1, "insert": 1}.get(edit, 0)))
    before, after = word[:place], word[place:]
    if edit == "swap":
        return before + after[1] + after[0] + after[2:], 2
    if edit == "delete":
        return before + after[1:], 1
    if edit == "insert":
        return before + LETTERS[rng.integers(len(LETTERS))] + after, 1
    others = [letter for letter in LETTERS if letter != after[0].lower()]
    letter = others[rng.integers(len(others))]
    return before + (letter.upper() if after[0].isupper() else letter) + after[1:], 1


def leave_out(parts: Sequence[str], place: int) -> str:
    """The text without a word and the space before it; `parts` are from `split_words`."""
    before, after = "".join(parts[:place]), "".join(parts[place + 1 :])
    return before.rstrip() + after if before.strip() else before + after.lstrip()
