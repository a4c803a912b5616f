"""Counts the faults of a file, and raises an error or warns of them."""

import warnings

from keras_bert_suite.heads.tags.annotations.spans import (
    CUT,
    DISAGREED,
    ELSEWHERE,
    IN_PIECES,
    OVERLAPPING,
    SPACES,
)

#: The actions of "fix" and "skip". Both do not read spans with other problems.
_DONE = {
    SPACES: ("trimmed", "not read"),
    ELSEWHERE: ("moved to the nearest place", "not read"),
    CUT: ("widened to whole words", "not read"),
    OVERLAPPING: ("the shorter one not read",) * 2,
    DISAGREED: ("the last one read", "left out"),
}


class Findings:
    """The faults of a `MarkedFile`.

    Args:
        file: `MarkedFile`.
        errors: "raise", "fix" or "skip".

    Attributes:
        left_out, corrected: as for `Examples`.
    """

    def __init__(self, file, errors):
        self.path, self.errors = file.path, errors
        self.left_out, self.corrected = file.left_out, {}
        self._first = None
        self._wrong = {}  # The reasons of `corrected` that are errors.

    def note(self, problem, text, message):
        """Notes an error of a `MarkedText`."""
        self._first = self._first or f"{self.path}, {text.where}: {message}"
        self._wrong.setdefault(problem, set()).add(text.name)
        self.correct(problem, text)

    def correct(self, reason, text):
        """Notes that a `MarkedText` is changed."""
        names = self.corrected.setdefault(reason, [])
        if names[-1:] != [text.name]:
            names.append(text.name)

    def leave_out(self, reason, text):
        """Notes that a `MarkedText`, or a part of it, is left out."""
        self.left_out.setdefault(reason, []).append(text.name)

    def finish(self, num_texts, num_read):
        """Raises a ValueError or warns, with the number of texts.

        Args:
            num_texts: int, the texts of the file.
            num_read: int, the texts that were not left out.
        """
        if self._first and self.errors == "raise":
            wrong = set().union(*self._wrong.values())
            raise ValueError(
                f"{self._first} {len(wrong)} of {num_texts} texts have such errors. Correct them, "
                'or pass errors="fix" or errors="skip".'
            )
        if not num_read:
            counts = [f"{why}: {len(names)}" for why, names in self.left_out.items()]
            raise ValueError(
                f"{self.path} has no texts with annotations that can be read. Left out: "
                f"{'; '.join(counts)}."
            )
        parts = [f"{len(names)} with {why}, {self._say(why)}" for why, names in self._wrong.items()]
        if IN_PIECES in self.left_out:
            parts.append(f"{len(set(self.left_out[IN_PIECES]))} with {IN_PIECES}, not read")
        if num_read < num_texts:
            parts.append(f"{num_texts - num_read} left out")
        if parts:
            warnings.warn(f"{self.path}: of {num_texts} texts {'; '.join(parts)}.", stacklevel=3)

    def _say(self, reason):
        if reason.startswith("places"):
            return "corrected"
        return _DONE.get(reason, ("not read",) * 2)[self.errors == "skip"]
