"""Reads the documents of a slice of a corpus. A document is a list of sentences."""

import gzip
import hashlib
import json
import os
import zlib

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.corpus.faults import Faults
from keras_bert_suite.corpus.input_files import format_of, is_blank, open_file
from keras_bert_suite.corpus.sentence_splitter import split_sentences
from keras_bert_suite.corpus.wikipedia import Article, UnreadableDumpError, read_articles
from keras_bert_suite.files.messages import list_names


def read_documents(corpus_slice, options, faults):
    """Yields the documents of a `CorpusSlice` in order, lists of sentences that are not blank.

    Each line of "sentences" is a sentence. The texts of the other formats are split by
    `split_sentences`. A byte order mark is dropped, and so are blank lines of "jsonl".

    A document that cannot be read is left out, and `faults` says why. There are five reasons: it
    has bytes that are not of the encoding (with `errors` "strict"); it is not a JSON object with a
    text under `text_key`; its file cannot be unpacked; its Wikipedia dump ends early; or,
    with `format` "auto", it begins a file that is a table or has objects of JSON.

    Raises:
        ValueError: if a file is shorter than it was when the corpus was planned.
    """
    for document in _read_slice(corpus_slice, options, faults):
        if isinstance(document, Article):
            document = document.read_text()
        yield split_sentences(document) if isinstance(document, str) else document


def find_faults(corpus_slice, options):
    """The `Faults` of a slice. No markup is parsed, and no text is split, so this is fast."""
    faults = Faults()
    for _ in _read_slice(corpus_slice, options, faults):
        pass
    return faults


def hash_slice(corpus_slice):
    """SHA-256 of the bytes of a slice, as they are on disk; str."""
    digest = hashlib.sha256()
    for name, start, end in corpus_slice.parts:
        with open(os.path.join(corpus_slice.folder, name), "rb") as file:
            file.seek(start)
            while start < end and (block := file.read(min(end - start, 1 << 20))):
                digest.update(block)
                start += len(block)
    return digest.hexdigest()


def _read_slice(corpus_slice, options, faults):
    """Yields documents: a list of sentences, a str that is still to be split, or an `Article`."""
    for part in corpus_slice.parts:
        yield from _PartReader(corpus_slice.folder, part, options, faults).read()


class _PartReader:
    """Reads a range of a file."""

    def __init__(self, folder, part, options, faults):
        self._name, self._start, self._end = part
        self._path = os.path.join(folder, self._name)
        self._options = options
        self._faults = faults

    def read(self):
        read = {
            "files": self._read_file,
            "jsonl": self._read_objects,
            "sentences": self._read_sentences,
            "wikipedia": self._read_articles,
        }[format_of(self._name, self._options.format)]
        try:
            yield from read()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._faults.add(self._name, None, f" cannot be unpacked: {error}.")
            self._faults.documents += 1
        except UnreadableDumpError as error:
            self._faults.add(self._name, None, f" {error}")
            self._faults.documents += 1

    def _read_articles(self):
        return read_articles(self._path, self._start, self._end)

    def _read_file(self):
        with open_file(self._path) as file:
            data = file.read()
        mark = self._options.byte_order_mark
        offset = len(mark) if data.startswith(mark) else 0
        yield from self._one_document(self._decode(data[offset:], offset))

    def _read_objects(self):
        for offset, line in self._read_lines():
            if not is_blank(line, self._options.encoding):
                yield from self._one_document(self._parse_text(line, offset))

    def _read_sentences(self):
        sentences, readable = [], True
        for offset, line in self._read_lines():
            if is_blank(line, self._options.encoding):
                yield from self._one_document(sentences if readable else None)
                sentences, readable = [], True
            else:
                sentence = self._decode(line, offset)
                if sentence is None or self._is_of_other_format(sentence, offset):
                    readable = False
                else:
                    sentences.append(sentence.strip())
        yield from self._one_document(sentences if readable else None)

    def _is_of_other_format(self, line, offset):
        """Whether the first line of a file shows that "auto" has not found its format."""
        if self._options.format != "auto" or offset > len(self._options.byte_order_mark):
            return False
        reason = ""
        if self._name.removesuffix(".gz").endswith((".csv", ".tsv")):
            reason = " is of a table. Write its texts to a .jsonl file, as objects with a text."
        elif line.startswith("{") and _is_object(line):
            reason = " is an object of JSON. `format` 'jsonl' reads its text."
        if reason:
            self._faults.add(self._name, offset, reason)
        return bool(reason)

    def _one_document(self, document):
        """Yields a document. None stands for a document that could not be read; it is counted."""
        if document is None:
            self._faults.documents += 1
        else:
            yield document

    def _read_lines(self):
        """Yields (offset, line) of the lines that begin in the range."""
        offset, mark = self._start, self._options.byte_order_mark
        # The unpacked size of a gzip file is known only at its end.
        packed = self._path.endswith(".gz")
        with open_file(self._path) as file:
            file.seek(offset)
            while offset < self._end or packed:
                line = file.readline()
                if not line:
                    break
                skipped = len(mark) if offset == 0 and line.startswith(mark) else 0
                # A carriage return ends a line of a file that has no line feed before its end.
                is_whole = offset == 0 and not file.peek(1)
                for part in line[skipped:].split(b"\r") if is_whole else [line[skipped:]]:
                    yield offset + skipped, part
                    skipped += len(part) + 1
                offset += len(line)
        if offset < self._end and not packed:
            raise ValueError(
                f"{self._path} ends at byte {offset:,} and had {self._end:,} when the corpus was "
                "planned. Let nothing write to the corpus while it is prepared, and start again."
            )

    def _decode(self, data, offset):
        """The text; None if it cannot be read."""
        encoding = self._options.encoding
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            if self._options.errors == "replace":
                self._faults.replaced_texts += 1
                return data.decode(encoding, "replace")
            place = offset + error.start
            reason = (
                f" is not {encoding.upper()}: byte 0x{data[error.start]:02x} at offset {place:,}, "
                f"{error.reason}."
            )
            self._faults.add(self._name, place, reason)

    def _parse_text(self, line, offset):
        """The text of a line of JSON; None if it cannot be read."""
        line = self._decode(line.rstrip(b"\r\n"), offset)
        if line is None:
            return None
        try:
            document = json.loads(line)
        # Numbers with too many digits raise ValueError, brackets nested too deep RecursionError.
        except (ValueError, RecursionError) as error:
            reason = f" is not JSON: {error}."
            if isinstance(error, json.JSONDecodeError):
                reason = f" is not JSON: {error.msg} (character {error.pos + 1})."
            self._faults.add(self._name, offset, reason)
            return None
        key = self._options.text_key
        if isinstance(document, dict) and isinstance(document.get(key), str):
            return document[key]
        got = with_article(document)
        if isinstance(document, dict):
            got = f"an object with the keys [{list_names(document)}]"
            if key in document:
                got = f"{json.dumps(document[key], ensure_ascii=False)[:40]} under it"
        reason = f": wanted an object with a string under {key!r}, got {got}."
        self._faults.add(self._name, offset, reason)


def _is_object(line):
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
