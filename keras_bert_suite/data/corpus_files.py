"""Finds the files of a corpus and cuts them into slices of whole documents."""

import dataclasses
import glob
import gzip
import os
from pathlib import Path

FORMATS = ("auto", "sentences", "files", "jsonl")


@dataclasses.dataclass(frozen=True)
class CorpusSlice:
    """A run of documents: what one shard is made of.

    Attributes:
        number: int, its place among the slices of the corpus, from 0.
        folder: str, what the names of files are relative to.
        parts: tuple of (name, start, end): a file and the range of its bytes.
    """

    number: int
    folder: str
    parts: tuple

    def __str__(self):
        name, start, _ = self.parts[0]
        return f"slice {self.number}, from byte {start:,} of {name}"

    @property
    def num_bytes(self):
        """int, bytes of input."""
        return sum(end - start for _, start, end in self.parts)


def find_files(inputs):
    """Lists the files that patterns name.

    Args:
        inputs: str, path or a list of them: files, folders, or patterns such as
            `corpus/*.txt` and `corpus/**`. A folder stands for all files in it and below,
            except hidden ones.

    Returns:
        (str, the folder that all are in; list of str, their names relative to it, sorted).

    Raises:
        FileNotFoundError: if an input names no file.
    """
    found = set()
    for entry in [inputs] if isinstance(inputs, str | os.PathLike) else inputs:
        entry = os.path.expanduser(os.fspath(entry))
        matches = [entry] if os.path.exists(entry) else glob.glob(entry, recursive=True)
        files = {file for match in matches for file in _list_files(Path(match).absolute())}
        if not files:
            raise FileNotFoundError(
                f"No file matches {entry!r}. Wanted the path of a file or of a folder with files, "
                "or a pattern such as 'corpus/*.txt'."
            )
        found |= files
    folder = os.path.commonpath([file.parent for file in found])
    return folder, sorted(file.relative_to(folder).as_posix() for file in found)


def format_of(name, format):
    """The format of a file: `format`, or what the name says if that is "auto".

    "sentences" is a sentence a line and a blank line between documents; "files" a document a
    file; "jsonl" a document a line, an object of JSON. The name of the second kind does not
    tell it from the first: "auto" takes `.jsonl` and `.jsonl.gz` for "jsonl", all else for
    "sentences".
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {', '.join(FORMATS)}. Received: {format!r}.")
    if format != "auto":
        return format
    return "jsonl" if name.removesuffix(".gz").endswith(".jsonl") else "sentences"


def plan_slices(folder, names, format, slice_bytes):
    """Cuts a corpus into slices of about `slice_bytes`, without reading it.

    The slices are a pure function of the files and the arguments. No document is cut: a slice
    grows until one ends. Small files share a slice. A file that ends in `.gz` is not cut.

    Args:
        folder, names: as from `find_files`.
        format: one of `FORMATS`.
        slice_bytes: int.

    Returns:
        list of `CorpusSlice`, which holds every byte of the files once, in order.
    """
    format_of("", format)
    if slice_bytes < 1:
        raise ValueError(f"`slice_bytes` must be at least 1. Received: {slice_bytes}.")
    slices, parts, size = [], [], 0
    for name in names:
        for start, end in _cut_file(os.path.join(folder, name), format, slice_bytes):
            if parts and size + end - start > slice_bytes:
                slices.append(CorpusSlice(len(slices), folder, tuple(parts)))
                parts, size = [], 0
            parts.append((name, start, end))
            size += end - start
    if parts:
        slices.append(CorpusSlice(len(slices), folder, tuple(parts)))
    return slices


def open_file(path):
    """Opens a file for reading bytes, unpacked if it is gzip's."""
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


def _list_files(path):
    if not path.is_dir():
        return [path]
    below = ((file, file.relative_to(path).parts) for file in path.rglob("*"))
    return [
        file
        for file, names in below
        if file.is_file() and not any(name.startswith(".") for name in names)
    ]


def _cut_file(path, format, slice_bytes):
    """Yields (start, end), one after the other, to the end of the file."""
    size = os.path.getsize(path)
    format = format_of(path, format)
    if format == "files" or path.endswith(".gz"):
        yield 0, size
        return
    start = 0
    with open(path, "rb") as file:
        while start < size:
            end = size
            if start + slice_bytes < size:
                file.seek(start + slice_bytes)
                end = _find_document_end(file, format)
            yield start, end
            start = end


def _find_document_end(file, format):
    """Reads on from somewhere in a file to where a document ends, or the file."""
    line = file.readline()
    if format == "jsonl":
        return file.tell()
    # The first line may be the second half of one.
    while line := file.readline():
        if is_blank(line):
            break
    return file.tell()


def is_blank(line):
    """Whether a line of bytes separates documents: spaces of any kind, or nothing."""
    return not line.strip() or (len(line) < 64 and not line.decode("utf-8", "replace").strip())
