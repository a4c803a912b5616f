"""Cuts raw text into words as the words of labelled rows are cut."""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from keras_bert_suite.heads.tags.word_cutting_rules import learn_cutting
from keras_bert_suite.heads.tags.word_parts import (
    ATTACHED,
    CLASSES,
    find_alone,
    find_kinds,
    find_marks,
    find_negations,
    list_keys,
    list_segments,
)
from keras_bert_suite.tokenizers.engines import SegmentCache
from keras_bert_suite.tokenizers.unicode_rules import SPACE, python_class


@dataclasses.dataclass(frozen=True)
class WordCutting:
    """How a tagger cuts raw text into words.

    A tagger learns from rows of words, and corpora differ in their words: `Coca-Cola`, `St.`, `do`
    and `n't`, or every character of `1998`. `fit` notes it, and texts are cut in the same way.

    White space separates words. A Chinese character is a word. A mark of punctuation is a word
    unless a rule says otherwise. Everything else between them is one word.

    ```python
    cutting = WordCutting.learn([["Coca-Cola", "moved", "to", "St.", "Louis", "."]])
    cutting.split("Pepsi-Cola left St. Louis.")  # Pepsi-Cola, left, St., Louis, .
    WordCutting(["letters", "numbers"]).split("1998年")  # 1, 9, 9, 8, 年
    ```

    Args:
        characters: the kinds, "letters" or "numbers", of which each character is a word.
        rules: dict. A key has three parts with spaces between them: the left side of some
            punctuation, the punctuation, and its right side. A side is a word without punctuation,
            `<letter>`, `<number>`, `<ideograph>`, or nothing at white space and at other
            punctuation. A value has a `|` for a cut or a `+` for none before the punctuation,
            between its characters and behind it: `{"St . ": "+|"}`.
        negation_apart: bool, whether `n't` is a word in `don't`.

    Raises:
        ValueError: for another class of characters, or a rule that cannot be read.
    """

    characters: tuple[str, ...] = ()
    rules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    negation_apart: bool = False

    def __post_init__(self) -> None:
        given = [self.characters] if isinstance(self.characters, str) else self.characters
        if unknown := [name for name in given if name not in CLASSES]:
            raise ValueError(f"characters must be of {list(CLASSES)}, got {unknown}.")
        object.__setattr__(self, "characters", tuple(n for n in CLASSES if n in given))
        object.__setattr__(self, "rules", dict(self.rules))
        for key, way in self.rules.items():
            parts = key.split(" ")
            if len(parts) != 3 or not parts[1] or not re.fullmatch(r"[|+]+", str(way)):
                raise ValueError(
                    f"A rule is like 'St . ': '+|', three parts with spaces between them and a "
                    f"'|' or '+' for each boundary, got {key!r}: {way!r}."
                )
            if len(way) != len(parts[1]) + 1:
                raise ValueError(
                    f"The rule {key!r} has {len(parts[1])} marks, so it needs "
                    f"{len(parts[1]) + 1} of '|' and '+', got {way!r}."
                )

    @classmethod
    def learn(cls, rows: Iterable[Any]) -> Self:
        """Learns from rows of words how they are cut. Rows that are texts do not count.

        Where a corpus cuts both ways, the more frequent way counts.

        Args:
            rows: N rows, each a list of str.

        Raises:
            ValueError: if no row is a list.
        """
        rows = list(rows)
        if all(isinstance(row, (str, bytes)) for row in rows):
            raise ValueError(
                f"Wanted rows of words, such as [['St.', 'Louis']], got {str(rows[:2])[:80]}. "
                "Texts do not say what a word is."
            )
        return cls(**learn_cutting(rows))

    @classmethod
    def read(cls, cutting: Any) -> Self | None:
        """A `WordCutting`, its `get_config()` or None, as a `WordCutting` or None."""
        if cutting is None or isinstance(cutting, cls):
            return cutting
        fields = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(cutting, Mapping) or cutting.keys() - fields:
            raise ValueError(
                f"word_cutting must be a WordCutting, its configuration or None, got {cutting!r}."
            )
        return cls(**cutting)

    def get_config(self) -> dict[str, Any]:
        """dict of values that JSON can hold."""
        return {**dataclasses.asdict(self), "characters": list(self.characters)}

    def split(self, text: str) -> list[str]:
        """The words of a text."""
        return [text[start:end] for start, end in self.cut(text)]

    def cut(self, text: str) -> list[tuple[int, int]]:
        """The `(start, end)` of each word of a text, in characters."""
        return [
            (match.start() + start, match.start() + end)
            for match in _chunk_pattern().finditer(text)
            for start, end in self._spans[match.group()]
        ]

    @functools.cached_property
    def _spans(self):
        return SegmentCache(self._cut_chunk)

    @functools.cached_property
    def alone(self) -> list[bool]:
        """As `find_alone`."""
        return find_alone(self.characters)

    def _cut_chunk(self, chunk):
        """The words of a text without white space."""
        kept = [i for i, kind in enumerate(find_kinds(chunk)) if kind != ATTACHED]
        if not kept:
            return ()
        cuts = self._find_cuts("".join(chunk[i] for i in kept))
        starts = [i for i, cut in zip(kept, cuts, strict=False) if cut]
        return tuple(zip(starts, [*starts[1:], len(chunk)], strict=True))

    def _find_cuts(self, text):
        """list of bool, whether there is a cut before each character of a text, and at its end.

        The text has no white space and no attached characters.
        """
        alone = [self.alone[kind] for kind in find_kinds(text)]
        cuts = [True, *(a or b for a, b in zip(alone, alone[1:], strict=False)), True]
        if not self.rules and not self.negation_apart:
            return cuts
        negations = find_negations(text) if self.negation_apart else set()
        # Of several marks, such as `.,`, each is looked up by itself, and then all together.
        for runs in (False, True):
            segments = list_segments(text, self.alone, runs, negations)
            for left, (start, end, _), right in find_marks(segments):
                way = self._find_way(text[slice(*left)], text[start:end], text[slice(*right)])
                for place, boundary in enumerate(way, start):
                    cuts[place] = boundary == "|"
        for place in {0, *negations, len(text)}:
            cuts[place] = True
        return cuts

    def _find_way(self, left, marks, right):
        """The boundaries of marks between two words, by the most special rule; "" without one."""
        for key in list_keys(left, marks, right):
            if key in self.rules:
                return self.rules[key]
        return ""


@functools.cache
def _chunk_pattern():
    return re.compile(f"[^{python_class(SPACE)}]+")
