"""The examples of a labelled file."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Examples:
    """The N examples of a file. Every reader returns them.

    `x` and `y` go into `fit`, `evaluate` and `score` as they are:

    ```python
    train = kbs.read_table("train.tsv", "sentence", "label")
    dev = kbs.read_table("dev.tsv", "sentence", "label", label_names=train.label_names)
    classifier = kbs.TextClassifier.from_preset("bert", label_names=train.label_names)
    classifier.fit(train.x, train.y, validation_data=(dev.x, dev.y))
    ```

    Attributes:
        path: str, the file.
        x: list of N inputs; a tuple of such lists if a row has several texts; or a dict of the
            texts and of columns beside them.
        y: list of N labels; None if the file was read without labels.
        label_names: list of str, the labels in the order of their ids, for `from_preset`. A model
            takes the names of its training file. None if the labels have no names.
        lines: list of N int, the line in which each example begins. The first line is 1. None if
            the file has no lines.
        ids: list of N str, the ids that the file gives its examples; None if it gives none.
        left_out: dict of a reason -> list of the lines, ids or rows that were left out for it.
        corrected: dict of a reason -> list of the ids of the examples that were changed for it.
        features: dict of the columns of a dict `x` that are no texts -> their kinds, for `features`
            of a classifier.
    """

    path: str
    x: list[Any] | tuple[list[Any], ...]
    y: list[Any] | None = None
    label_names: list[str] | None = None
    lines: list[int] | None = None
    ids: list[str] | None = None
    left_out: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    corrected: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    features: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def columns(self) -> tuple[list[Any], ...]:
        """The columns of `x`, one or more; without its features."""
        if isinstance(self.x, dict):
            return tuple(c for name, c in self.x.items() if name not in self.features)
        return self.x if isinstance(self.x, tuple) else (self.x,)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __repr__(self) -> str:
        """The numbers of rows and columns, the labels, and the beginning of the first row."""
        parts = [f"{self.path!r}", f"{len(self):,} rows", f"{len(self.columns)} columns of x"]
        if self.label_names is not None:
            names = _cut(", ".join(self.label_names))
            parts.append(f"{len(self.label_names):,} label names ({names})")
        for name in ("left_out", "corrected"):
            if places := getattr(self, name):
                parts.append(f"{sum(map(len, places.values())):,} {name}")
        if len(self):
            label = "" if self.y is None else f" -> {_cut(repr(self.y[0]))}"
            texts = ", ".join(_cut(repr(column[0])) for column in self.columns)
            parts.append(f"first row {texts}{label}")
        return f"Examples({', '.join(parts)})"

    def take(self, rows: int | Sequence[int] | None) -> "Examples":
        """Some examples, with all `label_names`.

        Args:
            rows: int, so many from the first; list of the indices of examples; or None for all.
        """
        places = range(len(self))
        chosen = places[:rows] if rows is None or isinstance(rows, int) else rows

        def choose(column):
            return column and [column[place] for place in chosen]

        x: Any
        if isinstance(self.x, dict):
            x = {name: choose(column) for name, column in self.x.items()}
        else:
            columns = tuple(map(choose, self.columns))
            x = columns if isinstance(self.x, tuple) else columns[0]
        return dataclasses.replace(
            self,
            x=x,
            y=choose(self.y),
            lines=choose(self.lines),
            ids=choose(self.ids),
        )

    def locate(self, row: int) -> str:
        """Where an example is, as text for a message: "train.tsv, line 7"."""
        if self.lines is not None:
            return f"{self.path}, line {self.lines[row]}"
        return f"{self.path}, id {self.ids[row]}" if self.ids else f"{self.path}, row {row}"


def _cut(text: str) -> str:
    """The beginning of a text, at most 60 characters."""
    return text if len(text) <= 60 else f"{text[:57]}..."
