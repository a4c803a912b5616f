"""The base of attacks: a search for a text that a classifier answers wrongly, by its answers."""

import collections
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

#: What a search gets for K texts that it asks for: class ids int (K,), probabilities float (K, C).
Answers = tuple[np.ndarray, np.ndarray]

#: Yields lists of texts, at least one in each, and gets their `Answers`. Returns (text, number of
#: changed words, class id of the answer to the text): the text that is answered wrongly, or the
#: worst that was found.
Search = Generator[list[str], Answers, tuple[str, int, int]]


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One row that was attacked.

    Attributes:
        row: int, counted from 0.
        text, changed_text: str.
        label, predicted: int, the class ids of the label and of the answer to `changed_text`.
        queries: int, how many texts the classifier was asked, `text` included.
        changed_words: int.
    """

    row: int
    text: str
    changed_text: str
    label: int
    predicted: int
    queries: int
    changed_words: int

    @property
    def is_flipped(self) -> bool:
        """bool, whether the answer to `changed_text` is wrong."""
        return self.predicted != self.label


class Attack(ABC):
    """A search for a changed text with a wrong answer. It sees answers alone, and no gradients.

    A class of your own needs `name` and `search`.
    """

    #: str, its name in a report.
    name: str

    def prepare(self, texts: Sequence[str]) -> Sequence[Any]:
        """What `search` needs to know of each text, from one pass over all texts."""
        return [None] * len(texts)

    @abstractmethod
    def search(
        self,
        text: str,
        label: int,
        probabilities: np.ndarray,
        prepared: Any,
        rng: np.random.Generator,
    ) -> Search:
        """Searches for a text that is answered wrongly.

        Args:
            text: str, which the classifier answers by its label.
            label: int, the id of the label.
            probabilities: float (C,), the answer to `text`.
            prepared: the entry of `prepare`.
            rng: the generator of this row.
        """


def attack_rows(
    attack: Attack,
    ask: Callable[[list[str]], Answers],
    texts: Sequence[str],
    label_ids: Sequence[int],
    seed: int = 0,
    rows_at_once: int = 32,
) -> list[Attempt]:
    """Attacks the rows that a classifier answers rightly.

    The searches of several rows take turns, so that the texts they ask for share batches. The
    result of a row does not depend on the others.

    Args:
        attack: `Attack`.
        ask: function from K texts to their `Answers`.
        texts, label_ids: N str and N int.
        seed: int. The generator of a row depends on the seed and the index of the row.
        rows_at_once: int, how many searches take turns.

    Returns:
        list of N `Attempt`. A row that was answered wrongly from the beginning has its own text and
        one query.
    """
    ids, probabilities = ask(list(texts))
    attempts = [
        Attempt(row, text, text, int(label), int(predicted), 1, 0)
        for row, (text, label, predicted) in enumerate(zip(texts, label_ids, ids, strict=True))
    ]
    right = [attempt.row for attempt in attempts if not attempt.is_flipped]
    prepared = attack.prepare([texts[row] for row in right]) if right else []
    waiting = collections.deque(zip(right, prepared, strict=True))
    asking: dict[int, tuple[Search, list[str]]] = {}

    def go_on(row: int, search: Search, answers: Answers | None = None) -> None:
        """Lets a search ask for its next texts, or notes its result."""
        attempt = attempts[row]
        try:
            part = search.send(answers)  # type: ignore[arg-type]
        except StopIteration as end:
            text, words, predicted = end.value
            attempts[row] = dataclasses.replace(
                attempt, changed_text=text, changed_words=words, predicted=int(predicted)
            )
        else:
            attempts[row] = dataclasses.replace(attempt, queries=attempt.queries + len(part))
            asking[row] = search, part

    while waiting or asking:
        while waiting and len(asking) < rows_at_once:
            row, known = waiting.popleft()
            rng = np.random.default_rng([seed, row])
            label = attempts[row].label
            go_on(row, attack.search(texts[row], label, probabilities[row], known, rng))
        turn = dict(asking)
        asking.clear()
        if turn:
            ids, found = ask([text for _, part in turn.values() for text in part])
            ends = np.cumsum([len(part) for _, part in turn.values()])[:-1]
            answers = zip(np.split(ids, ends), np.split(found, ends), strict=True)
            for (row, (search, _)), answer in zip(turn.items(), answers, strict=True):
                go_on(row, search, answer)
    return attempts


def choose_worst(label: int, answers: Answers) -> tuple[int, int, float]:
    """(place, class id, probability of the label) of the worst of the answers to some texts.

    A wrong answer is worse than a right one. Among equals, the label has the lowest probability.
    """
    ids, probabilities = answers
    likely = np.asarray(probabilities)[:, label]
    place = int(np.lexsort((likely, ids == label))[0])
    return place, int(ids[place]), float(likely[place])
