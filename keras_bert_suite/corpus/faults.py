"""Collects the documents of a corpus that cannot be read, and describes them in a message."""

import dataclasses
import os

from keras_bert_suite.corpus.input_files import open_file

#: How many places are kept at most, and how many of one file. Further places are only counted.
PLACES_KEPT, PLACES_OF_FILE = 20, 5


@dataclasses.dataclass
class Faults:
    """The faults of a corpus: places that cannot be read. It keeps the first of each file.

    Attributes:
        documents: int, how many documents cannot be read. The rest of a file that cannot be
            unpacked counts as one document.
        replaced_texts: int, in how many lines, or files of "files", bytes were replaced.
        count: int, how many places cannot be read.
        places: list of the first places: (name of a file; offset in the unpacked file, or None;
            str, the fault, such as " is not JSON").
    """

    documents: int = 0
    replaced_texts: int = 0
    count: int = 0
    places: list = dataclasses.field(default_factory=list)

    def add(self, name, offset, reason):
        """Adds a place; see the attribute `places`."""
        self.update(Faults(count=1, places=[(name, offset, reason)]))

    def update(self, other):
        """Adds the faults of a later part of the corpus, another `Faults`."""
        self.documents += other.documents
        self.replaced_texts += other.replaced_texts
        self.count += other.count
        for place in other.places:
            of_file = sum(name == place[0] for name, _, _ in self.places)
            if of_file < PLACES_OF_FILE and len(self.places) < PLACES_KEPT:
                self.places.append(place)

    def __len__(self):
        return self.count

    def describe(self, folder):
        """list of str, the first places, relative to a folder, and the number of the others."""
        lines = []
        for name, offset, reason in self.places:
            path = os.path.join(folder, name)
            place = path if offset is None else f"{path}, line {_find_line(path, offset)}"
            lines.append(place + reason)
        if self.count > len(lines):
            lines.append(f"{self.count - len(lines):,} more")
        return lines

    def error(self, folder):
        """The `ValueError` that lists the faults and the remedy."""
        lines = self.describe(folder)
        if self.count > 1:
            lines.insert(0, f"{self.count:,} places of the input cannot be read:")
        return ValueError(
            "\n".join(lines) + "\nCorrect them, or read the files with another `encoding`, "
            "`format` or `text_key`. `errors` 'replace' puts U+FFFD in place of bad bytes. "
            "`on_error` 'skip' leaves out the documents that cannot be read."
        )


def _find_line(path, offset):
    """int, the number of the line at a byte of the unpacked file, from 1."""
    feeds = returns = 0
    with open_file(path) as file:
        while offset and (block := file.read(min(offset, 1 << 20))):
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            offset -= len(block)
    # A carriage return ends a line where there is no line feed.
    return (feeds or returns) + 1
