"""Finds the columns of the words and of the tags in `ConllLines`, and checks the fields in them."""

import re

from keras_bert_suite.data.readers.conll_brackets import are_brackets
from keras_bert_suite.data.readers.conll_lines import CONLLU, count_places
from keras_bert_suite.data.tag_forms import OUTSIDE, split_tags

#: The signs that join a word and its tag in other formats: 中国/ns, Rio|B-LOC, The_DT.
_JOINTS = "/|_"

#: Words in brackets with a tag of their own, as in the People's Daily: [中国/ns  政府/n]nt.
_BRACKETS = re.compile(r"\S+/\w+\]\w*")


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
    if tag is None and lines.names is CONLLU:
        raise ValueError(
            f"{lines.path} has the ten columns of CoNLL-U, {', '.join(CONLLU)}. Say which of them "
            'has the tags: tag_column="UPOS".'
        )
    tag = -1 if tag is None else tag
    return tuple(column - (column > 0) for column in (word, tag))


def check_fields(lines, word, tag):
    """Raises a ValueError if a line has more or fewer fields than the others, naming it.

    If both columns count from the first, each sentence may have its number of fields: CoNLL-2012
    has a column for each verb.

    Args:
        lines: `ConllLines`.
        word, tag: int, from `choose_columns`.
    """
    fewest = max(2, *(column + 1 if column >= 0 else -column for column in (word, tag)))
    first = lines.sentences[0][0]
    for sentence in lines.sentences:
        # A space within a field may stand for a tab, in a sentence of one word, too.
        is_fixed = min(word, tag) < 0 or any(" " in field for _, row in sentence for field in row)
        number, fields = first if is_fixed else sentence[0]
        wanted = len(lines.names or fields)
        for line, fields in sentence:
            got = f"{lines.path}, line {line}: got {len(fields)} fields"
            if len(fields) < fewest:
                raise ValueError(
                    f"{got}, wanted at least {fewest}, a word and its tag among them, with tabs or "
                    "spaces between."
                )
            if len(fields) != wanted:
                has = f"line {number} has" if lines.names is None else "the names of columns are"
                remedy = "Correct the line, with a tab, or a space in a file without tabs, between "
                remedy += "two fields."
                if lines.names is None and min(word, tag) < 0:
                    remedy += " If sentences have columns of their own, as in CoNLL-2012, pass "
                    remedy += "`word_column` and `tag_column` that count from 1."
                raise ValueError(
                    f"{got}, {str(fields)[:200]}, and {has} {wanted}. A column would be another "
                    f"one. {remedy}"
                )


def check_places(lines):
    """Raises a ValueError if the numbers of words do not count, naming the line."""
    for sentence in lines.sentences:
        for place, (line, fields) in zip(count_places(sentence), sentence, strict=True):
            if fields[0] != place:
                raise ValueError(
                    f"{lines.path}, line {line}: the first column counts the words of each "
                    f"sentence, wanted {place}, got {fields[0][:40]!r}. Correct the line, with an "
                    "empty line before each sentence, or pass `word_column`."
                )


def check_words(lines, word):
    """Raises a ValueError if a word column that nobody named likely has names of sentences."""
    rows = [fields for sentence in lines.sentences for _, fields in sentence[1:]]
    before = [fields for sentence in lines.sentences for _, fields in sentence[:-1]]
    repeated = [fields[word] in ("", last[word]) for last, fields in zip(before, rows, strict=True)]
    if sum(repeated) > max(1, len(rows) / 2) and len(rows[0]) > 2:
        line, fields = lines.sentences[0][0]
        raise ValueError(
            f"{lines.path}, line {line}: the column {word + 1} has {fields[word][:40]!r} in many "
            "lines, which is no word. `word_column` names the column of the words. A blank line "
            "ends a sentence."
        )


def check_joined_words(lines):
    """Raises a ValueError if fields are words joined with their tags, as in 中国/ns."""
    rows = [row for sentence in lines.sentences for row in sentence]
    for joint in _JOINTS:
        joined = [
            (line, fields)
            for line, fields in rows
            if joint in fields[0][1:-1] and joint in fields[-1][1:-1]
        ]
        if 2 * len(joined) > len(rows):
            line, fields = joined[0]
            message = (
                f"{lines.path}, line {line}: {fields[0][:40]!r} is a word and its tag, joined by "
                f"{joint!r}. Wanted a line for each word, with a tab before its tag. Split the "
                f"fields, by word, tag = field.rsplit({joint!r}, 1), and pass lists of words and "
                "lists of tags to `fit`."
            )
            if any(_BRACKETS.fullmatch(field) for _, fields in rows for field in fields):
                message += " Read first the brackets, as in [中国/ns 政府/n]nt: an entity of words."
            raise ValueError(message)


def check_last_column(lines, word):
    """Raises a ValueError if the last column is not the only one that may have the tags.

    Tags of entities have a letter such as B, or are outside of entities. Others, such as parts of
    speech, cannot be told from any other column, so they need a `tag_column`.
    """
    rows = [row for sentence in lines.sentences for row in sentence]
    columns = [set(column) for column in zip(*(fields for _, fields in rows), strict=True)]
    *others, last = columns
    types = [set() if place == word else _list_types(tags) for place, tags in enumerate(others)]
    for place, shared in enumerate(types):
        shared &= _list_types(last)
        if shared:
            raise ValueError(
                f"{lines.path} has tags of the same types in the columns {place + 1} and "
                f"{len(columns)}, such as {min(shared)}: entities, and entities within them. "
                f"Pass tag_column={place + 1} or tag_column={len(columns)}."
            )
    if any(letter is not None for letter, _ in split_tags(last).values()):
        return
    line, fields = rows[0]
    got = f"{lines.path}, line {line}: {fields[-1][:40]!r} in the last column"
    for place, tags in enumerate(others):
        if are_brackets(tags) or _are_entities(tags):
            remedy = f"tag_column={place + 1}"
            if place == word:
                remedy = f"word_column={len(columns)}, {remedy}"
            raise ValueError(
                f"{got} is no tag of an entity, and the column {place + 1} has tags such as "
                f"{_find_entity(tags)!r}. Pass {remedy}, or tag_column={len(columns)} for the "
                "last column as it is."
            )
    raise ValueError(
        f"{got} is no tag of an entity: no tag there has a letter such as B or I, and none is O. "
        f"Pass tag_column={len(columns)} if these are other tags of words, such as parts of "
        f"speech. If a tag, such as '0' or 'other', says that a word is outside of entities, pass "
        "it as `outside`."
    )


def _read_number(column):
    if isinstance(column, str) and re.fullmatch(r"-?\d+", column):
        return int(column)
    return column


def _find_names(lines):
    """The names of the columns. A first line of names is taken out of the sentences."""
    if lines.names is None:
        _, lines.names = lines.sentences[0].pop(0)
        lines.sentences[:] = [sentence for sentence in lines.sentences if sentence]
        if not lines.sentences:
            raise ValueError(f"{lines.path} has one line, wanted names of columns and words.")
    return lines.names


def _find_name(path, names, column):
    if not isinstance(column, str):
        return column
    if names.count(column) != 1:
        raise ValueError(
            f"{path} has {names.count(column)} columns with the name {column!r}. Its columns are "
            f"{', '.join(names)[:400]}. Without names, pass the number of the column."
        )
    return names.index(column) + 1


def _list_types(tags):
    """The types of entities, or an empty set if the tags of a column are no entities."""
    split = split_tags(tags).values()
    if any(letter is None for letter, _ in split):
        return set()
    return {kind for _, kind in split if kind is not None}


def _are_entities(tags):
    """Whether most tags have a letter, or are outside of entities, and some have a letter."""
    letters = [letter for letter, _ in split_tags(tags).values() if letter is not None]
    return 2 * len(letters) > len(tags) and any(letter != OUTSIDE for letter in letters)


def _find_entity(tags):
    """A tag of an entity, for a message."""
    split = split_tags(tags)
    return min((tag for tag in tags if split[tag][0] not in (None, OUTSIDE)), default=max(tags))
