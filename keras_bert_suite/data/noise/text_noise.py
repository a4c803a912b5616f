"""Noise in texts, as a function for `AugmentedRows` and for scores over noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import check_share, read_choices
from keras_bert_suite.data.noise.kinds import KINDS, SPACE_KINDS, Edit


class TextNoise:
    """Puts noise into texts: typing errors, scanner errors, lost spaces, look-alike characters.

    Train with it, so that a model stands noise better, and measure by `kbs.robustness` whether it
    does.

    ```python
    noise = kbs.TextNoise(["keyboard", "swap", "delete", "insert"], rate=0.1)
    classifier.fit(kbs.AugmentedRows(texts, labels, noise), epochs=3)
    ```

    >>> kbs.TextNoise("swap", rate=0.2)(["a gripping, funny film"], seed=1)
    ['a grpiping, funny iflm']

    - `keyboard`: the letter of a key beside the right one (QWERTY); for a Chinese character one
      whose pinyin has such a letter.
    - `swap`, `delete`, `insert`: two neighbours swapped; a letter missing; a letter too much.
    - `ocr`: what scanners confuse, such as 0 and O, rn and m.
    - `lost_space`, `added_space`: two words joined; a word torn.
    - `homoglyph`: a letter of another script that is drawn like it, such as the Cyrillic a.
    - `homophone`: a Chinese character with the same pinyin, of any tone.

    The result of a text depends only on the seed and its index, and in `AugmentedRows` on the seed,
    the epoch and the index of the row. A row may also be a list of words, as for taggers. Each word
    is then changed by itself, so the labels of words stay right.

    Args:
        kinds: str or list of str, see above. Several kinds share the rate equally. A kind without a
            place in the text takes no share.
        rate: float from 0 to 1, the probability that a place is changed. A place of most kinds is a
            character, that of a swap two neighbours, and that of a lost space a space. Changes do
            not overlap.

    Raises:
        ValueError: for another kind or rate.

    Source: Belinkov and Bisk, 2018 (https://arxiv.org/abs/1711.02173), and Pruthi et al., 2019
    (https://arxiv.org/abs/1905.11268). They have no errors of scanners and no look-alikes.
    """

    #: `AugmentedRows` calls it for each row by itself.
    by_row = True

    def __init__(self, kinds: str | Sequence[str], rate: float = 0.1) -> None:
        self.kinds = tuple(dict.fromkeys(read_choices("kinds", kinds, KINDS)))
        check_share("rate", rate)
        self.rate = rate

    def __repr__(self) -> str:
        return f"TextNoise({list(self.kinds)}, rate={self.rate})"

    def __call__(self, texts: Sequence[Any], seed: Any = 0) -> list[Any]:
        """Makes a noisy text of each text.

        Args:
            texts: N str, or lists of words.
            seed: int, or a sequence of int; or a generator, which the texts then share.

        Returns:
            list of N str or lists of words, each with as many words as before.

        Raises:
            ValueError: if a text is neither, or a row of words meets a kind that would change the
                number of its words.
        """
        if isinstance(texts, (str, bytes)):
            raise ValueError(
                f"Texts must come as a list of strings, got the string {texts[:40]!r}. Put it in a "
                "list: [text]."
            )
        is_shared = isinstance(seed, np.random.Generator)
        seeds = [] if is_shared else np.atleast_1d(seed).tolist()
        return [
            self._change_row(
                row, index, seed if is_shared else np.random.default_rng([*seeds, index])
            )
            for index, row in enumerate(texts)
        ]

    def count_places(self, row: Any) -> int:
        """int, how many places of a text, or a list of words, the kinds may change."""
        words = [row] if isinstance(row, str) else row
        return sum(sum(1 for _ in KINDS[kind](word)) for kind in self.kinds for word in words)

    def _change_row(self, row, index, rng):
        if isinstance(row, str):
            return self._change_words([row], rng)[0]
        check_row(row, index)
        if wrong := [kind for kind in self.kinds if kind in SPACE_KINDS]:
            raise ValueError(
                f"The kind {wrong[0]} changes the number of words, and row {index} is a list of "
                f"words, which have a label each. Leave out {' and '.join(SPACE_KINDS)}."
            )
        # A word without a letter would have no token, and its label none to stand at.
        changed = self._change_words(row, rng)
        return [new or word for new, word in zip(changed, row, strict=True)]

    def _change_words(self, words, rng):
        found = [[list(KINDS[kind](word)) for word in words] for kind in self.kinds]
        found = [of_kind for of_kind in found if any(of_kind)]
        rate = self.rate / max(1, len(found))
        return [
            apply_edits(word, [edit for of_kind in found for edit in of_kind[i]], rate, rng)
            for i, word in enumerate(words)
        ]


def check_row(row: Any, index: int) -> None:
    """Raises a ValueError if a row is neither a text nor a list of words."""
    words = row if isinstance(row, (list, tuple)) else [row]
    if not all(isinstance(word, str) for word in words):
        raise ValueError(
            f"Noise is for texts and lists of words, got {str(row)[:40]} ({type(row).__name__}) at "
            f"row {index}."
        )


def apply_edits(text: str, edits: Sequence[Edit], rate: float, rng: np.random.Generator) -> str:
    """Makes each edit of a text with the probability `rate`. Overlapping ones leave the first."""
    chances = rng.random(len(edits))
    drawn = [edit for edit, chance in zip(edits, chances, strict=True) if chance < rate]
    parts, done, last = [], 0, (-1, -1)
    for start, end, choices in sorted(drawn, key=lambda edit: edit[:2]):
        if start < done or (start, end) == last:
            continue
        parts += [text[done:start], choices[rng.integers(len(choices))]]
        done, last = end, (start, end)
    return "".join([*parts, text[done:]])
