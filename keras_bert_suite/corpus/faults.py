"""Collects the documents of a corpus that cannot be read, and describes them in a message."""

import os

from keras_bert_suite.corpus.input_files import open_file

#: How many files a list names at most, and how many places in each file. The rest is only counted.
FILES_LISTED, PLACES_LISTED = 20, 5

#: What to do about each kind of fault.
REMEDIES = {
    "encoding": (
        "Name the encoding of the files with `encoding`, or convert them to UTF-8, for example "
        "with iconv; or choose `errors` 'replace', which puts U+FFFD in place of bad bytes."
    ),
    "json": "Correct the lines that are not JSON, or choose another `format`.",
    "text": "Name the key that holds the text with `text_key`, or correct the lines.",
    "gzip": "Restore the files that cannot be unpacked.",
}


class Faults:
    """The faults of a corpus: places that cannot be read. It keeps the first of each file.

    Attributes:
        documents: int, how many documents cannot be read. The rest of a file that cannot be
            unpacked counts as one document.
        replaced_texts: int, in how many lines, or files of "files", bytes were replaced.
        files: dict, name of a file -> [number of its faults, list of its first faults]. A fault is
            (offset in the unpacked file, or None; key of `REMEDIES`; str that says what is wrong).
        more: int, how many faults are in files that are not in `files`.
    """

    def __init__(self):
        self.documents = self.replaced_texts = self.more = 0
        self.files = {}

    def add(self, name, offset, kind, reason):
        """Adds a fault.

        Args:
            name: str, the file.
            offset: int, the byte in the unpacked file; or None.
            kind: key of `REMEDIES`.
            reason: str that follows the place in a message, such as " is not JSON".
        """
        self._count(name, 1, [(offset, kind, reason)])

    def update(self, other):
        """Adds the faults of a later part of the corpus, another `Faults`."""
        self.documents += other.documents
        self.replaced_texts += other.replaced_texts
        self.more += other.more
        for name, (count, first) in other.files.items():
            self._count(name, count, first)

    def _count(self, name, count, first):
        if name not in self.files and len(self.files) == FILES_LISTED:
            self.more += count
            return
        entry = self.files.setdefault(name, [0, []])
        entry[0] += count
        entry[1] += list(map(tuple, first[: PLACES_LISTED - len(entry[1])]))

    def __len__(self):
        return self.more + sum(count for count, _ in self.files.values())

    def to_json(self):
        """dict, the argument of `from_json`."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, value):
        """The `Faults` that `to_json` described."""
        faults, found = cls(), cls()
        vars(found).update(value)
        faults.update(found)
        return faults

    def describe(self, folder):
        """Describes the first faults, and counts the rest.

        Args:
            folder: str, the folder that the names of files are relative to.

        Returns:
            list of str, one for each fault, then one for each rest.
        """
        lines = []
        for name, (count, first) in self.files.items():
            path = os.path.join(folder, name)
            numbers = _number_lines(path, [offset for offset, _, _ in first if offset is not None])
            for offset, _, reason in first:
                place = path if offset is None else f"{path}, line {numbers[offset]}"
                lines.append(place + reason)
            if count > len(first):
                lines.append(f"{path}: {count - len(first):,} more")
        if self.more:
            lines.append(f"{self.more:,} more in other files")
        return lines

    def error(self, folder):
        """The `ValueError` that lists the faults and says what to do."""
        kinds = {kind for _, first in self.files.values() for _, kind, _ in first}
        lines = self.describe(folder)
        if len(self) > 1:
            lines = [f"{len(self):,} places of the input cannot be read:", *lines]
        remedies = [REMEDIES[kind] for kind in REMEDIES if kind in kinds]
        remedies.append("To leave out the documents that cannot be read, set `on_error` to 'skip'.")
        return ValueError("\n".join([*lines, *remedies]))


def _number_lines(path, offsets):
    """dict, offset -> number of its line from 1. The file is read once."""
    numbers, number, place = {}, 1, 0
    with open_file(path) as file:
        for offset in sorted(offsets):
            while place < offset:
                block = file.read(min(offset - place, 1 << 20))
                number += block.count(b"\n")
                place += len(block)
            numbers[offset] = number
    return numbers
