"""Splits files in CoNLL's form into the lines of words, and finds the columns of these lines."""

import dataclasses
import re

from keras_bert_suite.data.tag_forms import find_strangers, split_tags

#: Why a line of CoNLL-U is left out: its word is written in the lines after it, or not at all.
MULTIWORD, EMPTY = "a row of several words", "an empty node"

_EXTRA_ROWS = {MULTIWORD: re.compile(r"\d+-\d+"), EMPTY: re.compile(r"\d+\.\d+")}

#: The columns of CoNLL-U, https://universaldependencies.org/format.html.
_CONLLU = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
_COLUMNS_COMMENT = re.compile(r"# *global\.columns *= *(.*)")


@dataclasses.dataclass
class ConllLines:
    """The lines of words of a file.

    Attributes:
        path: str or path.
        sentences: list of lists of `(line number, fields)`.
        names: list of str, the names of the columns, or None.
        header: `(line number, fields)` of the first line, which may be names of columns.
        is_numbered: bool, whether the first column counts the words of each sentence.
        left_out: dict of a reason -> list of line numbers.
    """

    path: object
    sentences: list
    names: list | None
    header: tuple
    is_numbered: bool
    left_out: dict


def read_conll_lines(path, text):
    """Splits a text into `ConllLines`.

    Between the fields of a file are tabs, or spaces if no line has a tab. A blank line or a
    document mark (-DOCSTART-) ends a sentence. A line before the first word of a sentence is a
    comment if it begins with # and is not a word with its fields: it has more or fewer fields than
    the other lines, or its last field is no tag that other lines have.

    Raises:
        ValueError: if there are no words; or if a line has no tab and others have, naming it.
    """
    lines = [(number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1)]
    words = [line for _, line in lines if line.strip(" \t") and not _may_be_no_word(line)]
    has_tabs = any("\t" in line for line in words)
    fields_of = _split_tabs if has_tabs else _split_spaces
    width = len(fields_of(words[0])) if words else 0
    tags = {fields[-1] for fields in map(fields_of, words) if len(fields) == width}
    sentences, is_open, names = [], False, None
    for number, line in lines:
        if not line.strip(" \t") or line.upper().startswith("-DOCSTART-"):
            is_open = False
            continue
        fields = fields_of(line, width)
        if line.startswith("#") and not is_open and not _is_word(fields, width, tags):
            found = _COLUMNS_COMMENT.fullmatch(line)
            names = found[1].split() if found else names
            continue
        if has_tabs and "\t" not in line:
            raise ValueError(
                f"{path}, line {number}: the line {line[:40]!r} has no tab, and other lines have "
                "tabs between their fields. Put tabs between the fields of this line, too."
            )
        if not is_open:
            sentences.append([])
            is_open = True
        sentences[-1].append((number, fields))
    if not sentences:
        raise ValueError(f"{path} holds no sentences: wanted a word and its tag in each line.")
    return _drop_extra_rows(path, sentences, names)


def choose_columns(lines, word_column, tag_column):
    """The places of the words and of the tags, int twice, which may be negative.

    A first line of names is taken out of `lines.sentences`.

    Args:
        lines: `ConllLines`.
        word_column, tag_column: as for `read_conll`.

    Raises:
        ValueError: if there is no such column; or if none is named and several may be meant.
    """
    columns = [_read_number(column) for column in (word_column, tag_column)]
    if 0 in columns:
        raise ValueError("Columns count from 1, or from -1 for the last, got column 0.")
    if any(isinstance(column, str) for column in columns):
        names = _find_names(lines)
        columns = [_find_name(lines.path, names, column) for column in columns]
    word, tag = columns
    if word is None:
        word = 2 if lines.is_numbered else 1
    if tag is None:
        tag = -1
        _check_last_column(lines, word)
    return tuple(column - (column > 0) for column in (word, tag))


def check_widths(lines, word, tag):
    """Raises a ValueError if a line lacks a column, or columns counted from the end may be others.

    Args:
        lines: `ConllLines`.
        word, tag: int, from `choose_columns`.
    """
    fewest = max(2, *(column + 1 if column >= 0 else -column for column in (word, tag)))
    number, first = lines.sentences[0][0]
    for sentence in lines.sentences:
        for line, fields in sentence:
            if len(fields) < fewest:
                raise ValueError(
                    f"{lines.path}, line {line}: got {len(fields)} fields, wanted at least "
                    f"{fewest}, a word and its tag among them, with tabs or spaces between."
                )
            if len(fields) != len(first) and min(word, tag) < 0:
                raise ValueError(
                    f"{lines.path}, line {line}: got {len(fields)} fields, {' '.join(fields)!r}, "
                    f"and line {number} has {len(first)}. A column that counts from the end would "
                    "be another one. Correct the line, or pass columns that count from 1."
                )


def check_tags(path, located, max_tags):
    """Raises a ValueError if tags are likely no tags, showing the line.

    Args:
        path: str or path.
        located: dict of tag -> `(line number, word)`, where it occurs first.
        max_tags: int.
    """
    remedy = "`tag_column` names the column of the tags."
    if len(located) > max_tags:
        tag, (line, word) = list(located.items())[max_tags]
        raise ValueError(
            f"{path} has {len(located)} different tags, more than {max_tags}. Number "
            f"{max_tags + 1} is {tag[:40]!r} of the word {word[:40]!r} in line {line}. {remedy} If "
            f"these are tags, pass max_tags={len(located)}."
        )
    strangers = find_strangers(located)
    for tag, (letter, _) in split_tags(located).items():
        if letter is None and tag in strangers and not re.fullmatch(r"[A-Z0-9_.:+-]+", tag):
            line, word = located[tag]
            raise ValueError(
                f"{path}, line {line}: {tag[:40]!r} is the tag of {word[:40]!r}, and looks like a "
                "word or a comment: other tags begin with a letter such as B or I. Correct the "
                f"line, with O outside of entities. {remedy} If the line has the names of the "
                "columns, pass these names."
            )


def _may_be_no_word(line):
    return line.startswith("#") or line.upper().startswith("-DOCSTART-")


def _is_word(fields, width, tags):
    """Whether the fields of a line that begins with # are a word and its tag."""
    if len(fields) != width:
        return False
    ((letter, _),) = split_tags(fields[-1:]).values()
    return fields[-1] in tags or letter is not None


def _split_tabs(line, width=None):
    # A field of spaces alone is a word.
    return [field.strip(" ") or field for field in line.rstrip("\t").split("\t")]


def _split_spaces(line, width=None):
    fields = [field for field in line.split(" ") if field]
    # The word is a space, as in files with a character in each line.
    return [" ", *fields] if line.startswith(" ") and len(fields) + 1 == width else fields


def _drop_extra_rows(path, sentences, names):
    """`ConllLines` without the rows of CoNLL-U that are no words, if the first column counts."""
    extra = {}
    for sentence in sentences:
        for number, fields in sentence:
            for reason, pattern in _EXTRA_ROWS.items():
                if pattern.fullmatch(fields[0]):
                    extra[number] = reason
    kept = [[row for row in sentence if row[0] not in extra] for sentence in sentences]
    kept = [sentence for sentence in kept if sentence]
    is_numbered = bool(kept) and _counts_words(kept)
    if not is_numbered:
        kept, extra = sentences, {}
    left_out = {}
    for number, reason in extra.items():
        left_out.setdefault(reason, []).append(number)
    if names is None and is_numbered and all(len(s[0][1]) == len(_CONLLU) for s in kept):
        names = _CONLLU
    return ConllLines(path, kept, names, kept[0][0], is_numbered, left_out)


def _counts_words(sentences):
    """Whether the first field counts the words of each sentence, from 0 or 1."""
    if all(len(sentence) == 1 for sentence in sentences):
        # A word that is a number, unless it has the columns of CoNLL-U.
        return all(len(fields) == len(_CONLLU) and fields[0] == "1" for ((_, fields),) in sentences)
    for sentence in sentences:
        first = sentence[0][1][0]
        if first not in ("0", "1") or len(sentence[0][1]) < 3:
            return False
        wanted = range(int(first), int(first) + len(sentence))
        if [fields[0] for _, fields in sentence] != list(map(str, wanted)):
            return False
    return True


def _read_number(column):
    if isinstance(column, str) and re.fullmatch(r"-?\d+", column):
        return int(column)
    return column


def _find_names(lines):
    """The names of the columns. A first line of names is taken out of the sentences."""
    if lines.names is not None:
        return lines.names
    _, names = lines.sentences[0].pop(0)
    lines.sentences[:] = [sentence for sentence in lines.sentences if sentence]
    if not lines.sentences:
        raise ValueError(f"{lines.path} has one line, wanted names of columns and words.")
    return names


def _find_name(path, names, column):
    if not isinstance(column, str):
        return column
    if names.count(column) != 1:
        raise ValueError(
            f"{path} has {names.count(column)} columns with the name {column!r}. Its columns are "
            f"{', '.join(names)[:400]}. Without names, pass the number of the column."
        )
    return names.index(column) + 1


def _check_last_column(lines, word):
    """Raises a ValueError if the last column is not the only one that may have the tags."""
    if lines.names is _CONLLU:
        raise ValueError(
            f"{lines.path} has the ten columns of CoNLL-U, {', '.join(_CONLLU)}. Say which of them "
            'has the tags: tag_column="UPOS".'
        )
    rows = [fields for sentence in lines.sentences for _, fields in sentence]
    width = min(map(len, rows))
    types = [_list_types({fields[place] for fields in rows}) for place in range(width)]
    others = [place for place in range(width - 1) if place != word - 1 and types[place]]
    for place in others:
        if types[place] & types[-1]:
            raise ValueError(
                f"{lines.path} has tags of the same types in the columns {place + 1} and {width}, "
                f"such as {min(types[place] & types[-1])}: entities, and entities within them. "
                f"Pass tag_column={place + 1} or tag_column={width}."
            )


def _list_types(tags):
    """The types of entities, or an empty set if the tags of a column are no entities."""
    split = split_tags(tags).values()
    if any(letter is None for letter, _ in split):
        return set()
    return {kind for _, kind in split if kind is not None}
