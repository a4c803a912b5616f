"""Looks for the one or two misspellings that a classifier stands worst."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import check_integer, read_choices
from keras_bert_suite.attacks.attack import Attack, Search, choose_worst
from keras_bert_suite.attacks.stop_words import read_stop_words
from keras_bert_suite.data.augmentation import split_words
from keras_bert_suite.data.noise.keys import find_key_neighbors
from keras_bert_suite.data.noise.kinds import LETTERS

#: The edits of Pruthi et al., by the names of the kinds of noise.
EDITS = ("swap", "delete", "insert", "keyboard")

#: A search asks for so many texts before it looks at the answers.
_TEXTS_AT_ONCE = 128


class MisspellingAttack(Attack):
    """Tries every single misspelling of a text, and takes the worst.

    Two neighbouring letters are swapped, a letter is left out, any of a to z is put in, or a letter
    is replaced by one beside it on the keyboard. The first and the last letter of a word stay, so
    people read on without trouble. `edits=1` is exhaustive: no misspelling of this kind flips a row
    that withstands it. With more edits the next one goes into another word of the worst text so
    far, as in the authors' code.

    ```python
    report = kbs.robustness(classifier, dev.x, dev.y, attacks=[kbs.MisspellingAttack()])
    ```

    Args:
        edits: int, the most misspellings of a text; the paper has 1 and 2.
        kinds: str or list of "swap", "delete", "insert" and "keyboard".
        least_letters: int, the length of the shortest words that are changed.
        stop_words: words in lower case that stay. None for English ones of this package; the
            authors' code takes NLTK's.

    Raises:
        ValueError: for another kind or none, a number below 1, or stop words that are no list.

    Source: Pruthi et al., 2019 (https://arxiv.org/abs/1905.11268), section 2. Unlike in its code,
    swaps also go into words of 4 letters, no edit that changes nothing is asked for, and upper case
    stays.
    """

    def __init__(
        self,
        edits: int = 1,
        *,
        kinds: str | Sequence[str] = EDITS,
        least_letters: int = 4,
        stop_words: Collection[str] | None = None,
    ) -> None:
        check_integer("edits", edits, at_least=1)
        check_integer("least_letters", least_letters, at_least=1)
        self.kinds = read_choices("kinds", kinds, EDITS)
        self.edits, self.least_letters = edits, least_letters
        self.stop_words = read_stop_words(stop_words)
        chosen = "" if {*self.kinds} == {*EDITS} else f" ({', '.join(self.kinds)})"
        self.name = f"misspellings: {edits}{chosen}"

    def search(
        self,
        text: str,
        label: int,
        probabilities: np.ndarray,
        prepared: Any,
        rng: np.random.Generator,
    ) -> Search:
        parts = split_words(text, None)
        untouched = {
            place
            for place in range(1, len(parts), 2)
            if len(parts[place]) >= self.least_letters
            and parts[place].lower() not in self.stop_words
        }
        predicted, changed = label, 0
        while changed < self.edits:
            found = [
                (place, word)
                for place in sorted(untouched)
                for word in misspell(parts[place], self.kinds)
            ]
            worst = None
            for start in range(0, len(found), _TEXTS_AT_ONCE):
                tried = found[start : start + _TEXTS_AT_ONCE]
                answers = yield [_put(parts, place, word) for place, word in tried]
                best, predicted, likely = choose_worst(label, answers)
                if worst is None or predicted != label or likely < worst[0]:
                    worst = likely, *tried[best]
                if predicted != label:
                    break
            if worst is None:  # No word is left.
                break
            _, place, word = worst
            parts[place] = word
            untouched.discard(place)
            changed += 1
            if predicted != label:
                break
        return "".join(parts), changed, predicted


def misspell(word: str, kinds: Sequence[str] = EDITS) -> list[str]:
    """All words that differ from a word by one edit within it, without the first and last letter.

    >>> misspell("good", ["swap", "delete"])
    ['god']

    Args:
        word: str.
        kinds: list of names in `EDITS`.

    Returns:
        list of str, each once, without the word itself.
    """
    found = (edited for kind in kinds for edited in _EDITORS[kind](word))
    return [edited for edited in dict.fromkeys(found) if edited != word]


def _swap(word: str) -> Iterator[str]:
    for i in range(1, len(word) - 2):
        yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def _delete(word: str) -> Iterator[str]:
    yield from (word[:i] + word[i + 1 :] for i in range(1, len(word) - 1))


def _insert(word: str) -> Iterator[str]:
    letters = LETTERS.upper() if word.isupper() else LETTERS
    yield from (word[:i] + x + word[i:] for i in range(1, len(word)) for x in letters)


def _press_beside(word: str) -> Iterator[str]:
    for i in range(1, len(word) - 1):
        yield from (word[:i] + x + word[i + 1 :] for x in find_key_neighbors(word[i]))


_EDITORS = {"swap": _swap, "delete": _delete, "insert": _insert, "keyboard": _press_beside}


def _put(parts: Sequence[str], place: int, word: str) -> str:
    return "".join([*parts[:place], word, *parts[place + 1 :]])
