"""Documents of a slice of a corpus, each a list of sentences."""

import hashlib
import json
import os
import zlib

from keras_bert_suite.data.corpus_files import format_of, is_blank, open_file
from keras_bert_suite.data.sentence_splitter import split_sentences

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_documents(corpus_slice, format="auto", text_key="text"):
    """Yields the documents of a slice, in order.

    Lines of "sentences" are taken as they are; the texts of "files" and "jsonl" are split by
    `split_sentences`. A byte order mark is dropped, blank lines of "jsonl" are passed over.

    Args:
        corpus_slice: `CorpusSlice`.
        format: one of `corpus_files.FORMATS`.
        text_key: str, the key of a document's text in "jsonl".

    Yields:
        list of str, not one empty or blank. The list may be empty.

    Raises:
        ValueError: if a file is not UTF-8, a line is no object of JSON with a text under
            `text_key`, or a file is shorter than it was, naming file and line.
        OSError: if a file cannot be read.
    """
    for name, start, end in corpus_slice.parts:
        path = os.path.join(corpus_slice.folder, name)
        format_of_file = format_of(name, format)
        if format_of_file == "files":
            yield split_sentences(_decode(_read_file(path), path, 0))
        elif format_of_file == "jsonl":
            for offset, line in _read_lines(path, start, end):
                if not is_blank(line):
                    yield split_sentences(_parse_text(line, path, offset, text_key))
        else:
            yield from _read_sentences(path, start, end)


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


def _read_sentences(path, start, end):
    sentences = []
    for offset, line in _read_lines(path, start, end):
        if is_blank(line):
            yield sentences
            sentences = []
        else:
            sentences.append(_decode(line, path, offset).strip())
    yield sentences


def _read_lines(path, start, end):
    """Yields (offset, line) of the lines that begin in a range of bytes."""
    offset = start
    # The size of what gzip packed is not known before.
    packed = path.endswith(".gz")
    with open_file(path) as file:
        file.seek(start)
        while offset < end or packed:
            line = _read(file.readline, path)
            if not line:
                break
            yield offset, line if offset else line.removeprefix(BYTE_ORDER_MARK)
            offset += len(line)
    if offset < end and not packed:
        raise ValueError(
            f"{path} ends at byte {offset:,} and had {end:,} when the corpus was planned. Let "
            "nothing write to the corpus while it is prepared, and start again."
        )


def _read_file(path):
    with open_file(path) as file:
        return _read(file.read, path).removeprefix(BYTE_ORDER_MARK)


def _read(read, path):
    try:
        return read()
    except (EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} cannot be unpacked: {error}. It is damaged or cut short: restore it."
        ) from None


def _parse_text(line, path, offset, text_key):
    try:
        document = json.loads(_decode(line.rstrip(b"\r\n"), path, offset))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{_locate(path, offset)} is not JSON: {error.msg} (character {error.pos + 1}). "
            "Correct the line or remove it."
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get(text_key), str):
        got = f"an object with the keys {', '.join(map(repr, document))}"
        if not isinstance(document, dict):
            got = f"a {type(document).__name__}"
        elif text_key in document:
            got = f"a {type(document[text_key]).__name__} under it"
        raise ValueError(
            f"{_locate(path, offset)}: wanted an object with a string under {text_key!r}, got "
            f"{got}. Name the key that holds the text (text_key), or correct the line."
        )
    return document[text_key]


def _decode(data, path, offset):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{_locate(path, offset + error.start)} is not UTF-8: byte "
            f"0x{data[error.start]:02x}, {error.reason}. Convert the file to UTF-8, for example "
            "with iconv."
        ) from None


def _locate(path, offset):
    """Where a byte stands, as an error says it; counts the lines before it only now."""
    number = 1
    with open_file(path) as file:
        while offset > 0 and (block := file.read(min(offset, 1 << 20))):
            number += block.count(b"\n")
            offset -= len(block)
    return f"{path}, line {number}"
