"""Reads sentences with a tag on each word from files in CoNLL's form, with a word in each line."""

import os
import re

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.text_files import read_text
from keras_bert_suite.data.tag_schemes import convert_tags, find_entities

#: A character (or several, after a wrong encoding), and then the digit of its place in the word.
_NUMBERED = re.compile(r".+[0-9]")


def read_conll(
    path: str | os.PathLike[str],
    word_column: int = 1,
    tag_column: int = -1,
    encoding: str = "utf-8",
    scheme: str | None = None,
) -> Examples:
    """Reads the words of sentences, and their tags.

    A line holds the fields of a word, with tabs between them or, in a line without tabs, spaces. A
    blank line ends a sentence. Lines that begin with -DOCSTART- are skipped. The Chinese data of
    Weibo NER numbers the characters of each word, as in 科0 技1. If all words of a file end in a
    digit, and at least one word is not ASCII, the last digit of each word is left out.

    Args:
        path: str or path.
        word_column, tag_column: int, the number of a field, 1 for the first, -1 for the last.
        encoding: str, the encoding of the file.
        scheme: how `y` says which words are an entity. None: by the tags of the file. "IOB1",
            "BIO", "BIOES" or "BMES": by tags of this scheme, whatever the scheme of the file.
            "spans": by triples (start, end, type) that count words, for `EntitySpanClassifier`.

    Returns:
        `Examples` of at least one sentence. `x`: lists of words. `y`: lists of tags, or of spans.
        `label_names`: the tags, "O" first, then the others sorted by type; or the types, sorted.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if a line is in another encoding or lacks a field, naming the line; if there are
            no sentences, or no such encoding or scheme; or if a column is 0.
    """
    if 0 in (word_column, tag_column):
        raise ValueError("Columns count from 1, or from -1 for the last, got column 0.")
    read = _read_sentences(path, read_text(path, encoding), word_column, tag_column)
    words, tags, lines = ([sentence[i] for sentence in read] for i in range(3))
    if not words:
        raise ValueError(f"{path} holds no sentences: wanted a word and its tag in each line.")
    if _are_numbered(word for row in words for word in row):
        words = [[word[:-1] for word in row] for row in words]
    if scheme == "spans":
        y = [[(first, end, kind) for kind, first, end in find_entities(row)] for row in tags]
        names = sorted({kind for row in y for _, _, kind in row})
    else:
        y = tags if scheme is None else [convert_tags(row, scheme) for row in tags]
        names = _list_tags(y)
    return Examples(str(path), words, y, names, lines)


def _read_sentences(path, text, word_column, tag_column):
    """list of (words, tags, the line of the first word)."""
    fewest = max(2, abs(word_column), abs(tag_column))
    sentences, is_open = [], False
    for number, line in enumerate(text.split("\n"), 1):
        fields = _split(line)
        if not fields:
            is_open = False
            continue
        if fields[0] == "-DOCSTART-":
            continue
        if len(fields) < fewest:
            raise ValueError(
                f"{path}, line {number}: got {len(fields)} fields, wanted at least {fewest}, a "
                "word and its tag among them."
            )
        if not is_open:
            sentences.append(([], [], number))
            is_open = True
        words, tags, _ = sentences[-1]
        words.append(fields[word_column - (word_column > 0)])
        tags.append(fields[tag_column - (tag_column > 0)])
    return sentences


def _are_numbered(words):
    words = list(words)
    return all(map(_NUMBERED.fullmatch, words)) and not all(map(str.isascii, words))


def _list_tags(sentences):
    """The different tags of sentences, "O" first, then the others sorted by type.

    >>> _list_tags([["B-PER", "O"], ["I-PER", "B-LOC"]])
    ['O', 'B-LOC', 'B-PER', 'I-PER']
    """
    tags = {tag for sentence in sentences for tag in sentence}
    return sorted(tags, key=lambda tag: (tag != "O", tag.partition("-")[2], tag))


def _split(line):
    line = line.rstrip("\r\n")
    if not line.strip(" \t"):
        return []
    if "\t" in line:
        return [field.strip(" ") for field in line.rstrip("\t").split("\t")]
    return [field for field in line.split(" ") if field]
