"""Finds the files of a corpus and cuts them into slices of whole documents."""

import codecs
import dataclasses
import glob
import gzip
import os
from pathlib import Path

from keras_bert_suite.argument_checks import check_choice, check_integer
from keras_bert_suite.corpus.wikipedia import DUMP_NAME, check_markup_parser, find_page

FORMATS = ("auto", "sentences", "files", "jsonl", "wikipedia")


@dataclasses.dataclass(frozen=True)
class InputOptions:
    """How the files of a corpus are read.

    Attributes:
        format: one of `FORMATS`, see `format_of`.
        text_key: str, the key of a document's text in "jsonl".
        encoding: str, the encoding of the files. Python must know it, and it must end a line with
            the byte 0x0a. It is stored under Python's name of it, "utf-8-sig" as "utf-8".
        errors: "strict" counts bytes that are not of the encoding as a fault, "replace" reads
            U+FFFD instead of them.
        on_error: "stop" refuses an input with documents that cannot be read, "skip" leaves such
            documents out and counts them.

    Raises:
        ValueError: if an argument has another value.
    """

    format: str = "auto"
    text_key: str = "text"
    encoding: str = "utf-8"
    errors: str = "strict"
    on_error: str = "stop"

    def __post_init__(self):
        check_choice("`format`", self.format, FORMATS)
        check_choice("`errors`", self.errors, ("strict", "replace"))
        check_choice("`on_error`", self.on_error, ("stop", "skip"))
        object.__setattr__(self, "encoding", _find_encoding(self.encoding))

    @property
    def byte_order_mark(self):
        """bytes that may stand before the text of a file; empty if the encoding has none."""
        try:
            return "\ufeff".encode(self.encoding)
        except UnicodeEncodeError:
            return b""


@dataclasses.dataclass(frozen=True)
class CorpusSlice:
    """Consecutive documents, which make one shard.

    Attributes:
        number: int, its place among the slices of the corpus, from 0.
        folder: str, the folder that the names of files are relative to.
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
    """Lists the files that paths, folders or patterns such as `corpus/**` name.

    A folder stands for all files in it and below, except hidden ones. The result is the folder that
    holds all of them, and their sorted names relative to it. An input without a file is an error.
    """
    found = set()
    for entry in [inputs] if isinstance(inputs, str | os.PathLike) else inputs:
        entry = os.path.expanduser(os.fspath(entry))
        matches = [entry] if os.path.exists(entry) else glob.glob(entry, recursive=True)
        files = {file for match in matches for file in _list_files(Path(match).absolute())}
        if not files:
            raise FileNotFoundError(
                f"No file matches {entry!r}. Wanted a file, a folder or a pattern, 'corpus/*.txt'."
            )
        found |= files
    folder = os.path.commonpath([file.parent for file in found])
    return folder, sorted(file.relative_to(folder).as_posix() for file in found)


def format_of(name, format):
    """The format of a file: `format`, or with "auto" the format that its name says.

    In "sentences" each line is a sentence, and a blank line ends a document. In "files" each file
    is a document. In "jsonl" each line is a document, an object of JSON. In "wikipedia" each
    article of a dump is a document. The name of a file cannot tell "files" from "sentences". So
    "auto" takes `.jsonl` and `.jsonl.gz` for "jsonl", `.xml` and `.xml.bz2` for "wikipedia", and
    every other name for "sentences".
    """
    if format != "auto":
        return format
    if DUMP_NAME.search(name):
        return "wikipedia"
    return "jsonl" if name.removesuffix(".gz").endswith(".jsonl") else "sentences"


def plan_slices(folder, names, format, slice_bytes, encoding="utf-8"):
    """Cuts a corpus into `CorpusSlice`s of about `slice_bytes`, without reading it.

    The slices are a pure function of the files and the arguments. No document is cut: a slice
    grows until a document ends. Small files share a slice. A `.gz` file is not cut. A `.bz2` file
    of Wikipedia is cut if it is a multistream dump.

    Args:
        folder, names: as from `find_files`.
        format: one of `FORMATS`.
        slice_bytes: int.
        encoding: str, as in `InputOptions`.

    Returns:
        list of `CorpusSlice`. Together they have every byte of the files once, in order.

    Raises:
        ImportError: if there is a Wikipedia dump, and no parser for its markup is installed.
    """
    check_integer("slice_bytes", slice_bytes, at_least=1)
    if any(format_of(name, format) == "wikipedia" for name in names):
        check_markup_parser()
    slices, parts, size = [], [], 0
    for name in names:
        for start, end in _cut_file(os.path.join(folder, name), format, slice_bytes, encoding):
            if parts and size + end - start > slice_bytes:
                slices.append(CorpusSlice(len(slices), folder, tuple(parts)))
                parts, size = [], 0
            parts.append((name, start, end))
            size += end - start
    if parts:
        slices.append(CorpusSlice(len(slices), folder, tuple(parts)))
    return slices


def open_file(path):
    """Opens a file for reading bytes. A gzip file is unpacked."""
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


def _cut_file(path, format, slice_bytes, encoding):
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
                end = _find_document_end(file, format, encoding)
            yield start, end
            start = end


def _find_document_end(file, format, encoding):
    """Reads on from a place in a file to the next end of a document, or to the end of the file."""
    if format == "wikipedia":
        return find_page(file, file.name.endswith(".bz2"))
    line = file.readline()
    if format == "jsonl":
        return file.tell()
    # The first line may be the rest of a line.
    while line := file.readline():
        if is_blank(line, encoding):
            break
    return file.tell()


def is_blank(line, encoding):
    """Whether a line of bytes is blank: it is empty, or has spaces of any kind only."""
    return not line.strip() or (len(line) < 64 and not line.decode(encoding, "replace").strip())


def _find_encoding(name):
    """Python's name of an encoding."""
    try:
        found = codecs.lookup(name).name
        found = "utf-8" if found == "utf-8-sig" else found
        is_fit = "\n".encode(found) == b"\n"
    except (LookupError, UnicodeError):
        is_fit = False
    if not is_fit:
        raise ValueError(
            f"encoding={name!r} cannot be read: Python must know the encoding, and its lines must "
            "end with the byte 0x0a. Such are 'utf-8', 'gb18030' and 'cp1252'. Convert other files "
            "to UTF-8, for example with iconv."
        )
    return found
