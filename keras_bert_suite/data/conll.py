"""Reads sentences with a tag on each word from files in CoNLL's form, with a word in each line.

This module needs only the standard library.
"""

import re

from keras_bert_suite.data.tables import read_text

#: A character (or several, after a wrong encoding), and then the digit of its place in the word.
_NUMBERED = re.compile(r".+[0-9]")


def read_conll(path, word_column=1, tag_column=-1, encoding="utf-8"):
    """Reads the words of sentences, and their tags.

    A line holds the fields of a word, with tabs between them or, in a line without tabs, spaces. A
    blank line ends a sentence. Lines that begin with -DOCSTART- are skipped. The Chinese data of
    Weibo NER numbers the characters of each word, as in 科0 技1. If all words of a file end in a
    digit, and at least one word is not ASCII, the last digit of each word is left out.

    Args:
        path: str or path.
        word_column, tag_column: int, the number of a field, 1 for the first, -1 for the last.
        encoding: str, the encoding of the file.

    Returns:
        (words, tags): two lists, each with a list of str for each sentence.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is in another encoding or lacks a field, naming the line; if there are
            no sentences or no such encoding; or if a column is 0.
    """
    if 0 in (word_column, tag_column):
        raise ValueError("Columns count from 1, or from -1 for the last, got column 0.")
    sentences, words, tags = [], [], []
    for number, line in enumerate(read_text(path, encoding).split("\n"), 1):
        fields = _split(line)
        if not fields:
            if words:
                sentences.append((words, tags))
            words, tags = [], []
            continue
        if fields[0] == "-DOCSTART-":
            continue
        fewest = max(column if column > 0 else -column for column in (word_column, tag_column))
        if len(fields) < max(fewest, 2):
            raise ValueError(
                f"{path}, line {number}: got {len(fields)} fields, wanted at least "
                f"{max(fewest, 2)}, a word and its tag among them."
            )
        words.append(fields[word_column - (word_column > 0)])
        tags.append(fields[tag_column - (tag_column > 0)])
    if words:
        sentences.append((words, tags))
    if not sentences:
        raise ValueError(f"{path} holds no sentences: wanted a word and its tag in each line.")
    rows = [words for words, _ in sentences]
    if _are_numbered(word for words in rows for word in words):
        rows = [[word[:-1] for word in words] for words in rows]
    return rows, [tags for _, tags in sentences]


def _are_numbered(words):
    words = list(words)
    return all(map(_NUMBERED.fullmatch, words)) and not all(map(str.isascii, words))


def list_tags(sentences):
    """The different tags of sentences, "O" first, then the others sorted by type.

    >>> list_tags([["B-PER", "O"], ["I-PER", "B-LOC"]])
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
