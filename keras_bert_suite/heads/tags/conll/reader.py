"""Reads sentences with a tag on each word from files in CoNLL's form, with a word in each line."""

import json
import os
import re
from pathlib import Path

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.text_files import read_text, split_lines
from keras_bert_suite.heads.tags.conll import guesses as conll_guesses
from keras_bert_suite.heads.tags.conll.brackets import read_brackets
from keras_bert_suite.heads.tags.conll.columns import check_fields, choose_columns
from keras_bert_suite.heads.tags.conll.lines import read_conll_lines
from keras_bert_suite.heads.tags.conll.tags import check_tags, warn_of_mixed_schemes
from keras_bert_suite.heads.tags.tag_forms import OUTSIDE, warn_of_strangers
from keras_bert_suite.heads.tags.tag_schemes import (
    convert_tags,
    find_entities,
    list_tags,
    parse_tags,
)

#: The language before each word of WikiANN: en:Rio.
_LANGUAGE = re.compile(r"[a-z][a-z-]+:(?=.)")

#: A character (or several, after a wrong encoding), and then its place in the word.
_NUMBERED = re.compile(r".+[0-9]")


def read_conll(
    path: str | os.PathLike[str],
    word_column: int | str | None = None,
    tag_column: int | str | None = None,
    encoding: str = "utf-8",
    scheme: str | None = None,
    max_tags: int = 100,
    outside: str = OUTSIDE,
    errors: str = "raise",
) -> Examples:
    """Reads the words of sentences, and their tags.

    A line holds the fields of a word, with tabs between them or, in a file without tabs, spaces. A
    blank line ends a sentence. Comments before a sentence, document marks such as -DOCSTART-, and
    the rows of CoNLL-U for multiword tokens and empty nodes are left out. A line may also hold a
    sentence, a tab (or `|||`), and a tag for each of its words. `docs/files_we_read.md` has the
    rules.

    The Chinese data of Weibo NER numbers the characters of each word, as in 科0 技1. If all words
    of a file end in a digit, and at least one word is not ASCII, the place is left out: S0 t1, up
    to r10 in a long word. WikiANN has the language before each word, en:Rio, which is left out,
    too.

    Args:
        path: str or path.
        word_column, tag_column: int, the number of a field, 1 for the first, -1 for the last; or
            str, the name of a column: FORM or UPOS of CoNLL-U, or a name in the first line of the
            file. None for the words is the first column, or the second if the first counts the
            words of each sentence. None for the tags is the last column, if it has tags of
            entities: some tag has a letter such as B, or is "O". Other tags of words, such as parts
            of speech, need a `tag_column`.
        encoding: str, the encoding of the file.
        scheme: how `y` says which words are an entity. None: by the tags of the file. "IOB1",
            "BIO", "BIOES" or "BMES": by tags of this scheme, whatever the scheme of the file.
            "spans": by triples (start, end, type) that count words, for `EntitySpanClassifier`.
        max_tags: int, the most different tags of the file. More are likely another column.
        outside: the tag of words outside of entities, which becomes "O", such as "0" or "other".
        errors: "raise" for one error about the lines that cannot be read, or "skip" to leave out
            their sentences.

    Returns:
        `Examples` of at least one sentence. `x`: lists of words. `y`: lists of tags, or of spans.
        `label_names`: the tags, "O" first, then the others sorted by type; or the types, sorted.
        `left_out`: the lines of multiword tokens and empty nodes, and with "skip" those that
        cannot be read.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if a line is in another encoding; unless `errors` is "skip", if a line lacks a
            field, has another number of fields than the others, of words than of tags, or another
            number than the place of its word, if a comment stands within a sentence, if brackets
            do not close, or if tags are likely words, naming the lines; if there are more than
            `max_tags`; if no column is named and another may be meant, or words and tags are joined
            as in word/tag; if there are no sentences, or the file is JSON; or if there is no such
            column, encoding, scheme or value of `errors`.
    """
    text = read_text(path, encoding)
    _check_is_no_json(path, text)
    _check_is_no_table(path, text)
    lines = read_conll_lines(path, text, errors)
    word, tag = choose_columns(lines, word_column, tag_column)
    if tag_column is None:
        conll_guesses.check_joined_words(lines)
    check_fields(lines, word, tag)
    _rewrite_tags(lines, tag, outside)
    if tag_column is None:
        conll_guesses.check_last_column(lines, word)
    if word_column is None and lines.is_numbered:
        conll_guesses.check_places(lines)
    elif word_column is None:
        conll_guesses.check_words(lines, word)
    check_tags(lines, word, tag, max_tags, is_named=tag_column is not None)
    words = [[fields[word] for _, fields in sentence] for sentence in lines.sentences]
    tags = [[fields[tag] for _, fields in sentence] for sentence in lines.sentences]
    firsts = [sentence[0][0] for sentence in lines.sentences]
    found = dict.fromkeys(each for row in tags for each in row)
    warn_of_strangers(found, str(path))
    if scheme is None:
        warn_of_mixed_schemes(path, tags, firsts)
    if _are_numbered(word for row in words for word in row):
        words = [_strip_places(row) for row in words]
    language = _find_language(word for row in words for word in row)
    words = [[word.removeprefix(language) for word in row] for row in words]
    y, names = _label(tags, found, scheme)
    left_out = {**lines.left_out, **lines.faults.left_out}
    return Examples(str(path), words, y, names, firsts, left_out=left_out)


def _check_is_no_json(path, text):
    """Raises a ValueError for JSON, as CLUENER has it: its spaces would be taken for columns."""
    try:
        is_json = isinstance(json.loads(split_lines(text.lstrip())[0]), (dict, list))
    except (ValueError, RecursionError):
        return
    if is_json:
        raise ValueError(
            f"{path} is JSON. Wanted a word and its tag in each line. If it has the places of "
            "entities, read it with read_annotations. If it has lists of words and "
            "lists of tags, pass these to `TokenClassifier.fit`."
        )


def _check_is_no_table(path, text):
    """Raises a ValueError for a CSV table, as Kaggle has them, with a word in each row."""
    first = split_lines(text)[0]
    if Path(path).suffix.lower() == ".csv" and "," in first and "\t" not in first:
        raise ValueError(
            f"{path} is a CSV table. Wanted a word and its tag in each line, with tabs or spaces "
            f"between. It begins with {first[:80]!r}. If its first column says which sentence a "
            "word is in: frame = pandas.read_csv(path, keep_default_na=False); column = "
            "frame.iloc[:, 0]; rows = frame.groupby(column.mask(column == '').ffill(), sort=False)."
            " Then rows['Word'].apply(list).tolist() are the words, with the name of your column, "
            "and rows['Tag'].apply(list).tolist() the tags, as `fit` takes them."
        )


def _rewrite_tags(lines, column, outside):
    """Writes "O" for `outside`, and tags of BIO for brackets."""
    rows = [
        [(line, OUTSIDE if fields[column] == outside else fields[column]) for line, fields in rows]
        for rows in lines.sentences
    ]
    for sentence, tags in zip(lines.sentences, read_brackets(lines, rows), strict=True):
        for (_, fields), tag in zip(sentence, tags, strict=True):
            fields[column] = tag
    lines.leave_out()


def _label(tags, names, scheme):
    """(labels of the sentences, label names) in a scheme, from the tags of a file."""
    if scheme == "spans":
        parsed = parse_tags(names)
        entities = [find_entities(row, parsed) for row in tags]
        y = [[(first, end, kind) for kind, first, end in row] for row in entities]
        return y, sorted({kind for row in y for _, _, kind in row})
    y = tags if scheme is None else convert_tags(tags, scheme)
    return y, list_tags(y)


def _are_numbered(words):
    words = list(words)
    return all(map(_NUMBERED.fullmatch, words)) and not all(map(str.isascii, words))


def _strip_places(words):
    """The characters of a sentence without their places, which count up from 0 in each word.

    >>> _strip_places(["科0", "技1", "70"])
    ['科', '技', '7']
    """
    stripped, place = [], -1
    for word in words:
        following = str(place + 1)
        # The place 10 of a character has two digits; a character may itself be a digit, 310.
        goes_on = word.endswith(following) and len(word) > len(following)
        place = place + 1 if goes_on else int(word[-1])
        stripped.append(word.removesuffix(str(place)))
    return stripped


def _find_language(words):
    """The common prefix of all words, such as "en:", or an empty string."""
    words = set(words)
    starts = {found and found[0] for found in map(_LANGUAGE.match, words)}
    return starts.pop() or "" if len(starts) == 1 < len(words) else ""
