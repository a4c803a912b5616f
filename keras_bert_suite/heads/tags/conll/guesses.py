"""Checks whether the columns of `ConllLines` that nobody named have words and tags of entities."""

import re

from keras_bert_suite.heads.tags.conll.brackets import are_brackets
from keras_bert_suite.heads.tags.conll.lines import count_places
from keras_bert_suite.heads.tags.tag_forms import OUTSIDE, split_tags

#: The signs that join a word and its tag in other formats: 中国/ns, Rio|B-LOC, The_DT.
_JOINTS = "/|_"

#: Words in brackets with a common tag, as in the People's Daily: [中国/ns  政府/n]nt.
_BRACKETS = re.compile(r"\S+/\w+\]\w*")


def check_places(lines):
    """Leaves out sentences in which the numbers of words do not count.

    Raises:
        ValueError: as `RowFaults.keep`.
    """
    for sentence in lines.sentences:
        for place, (line, fields) in zip(count_places(sentence), sentence, strict=True):
            if fields[0] != place:
                lines.refuse(
                    line,
                    "another number than the place of the word",
                    f"the first column counts the words of each sentence, wanted {place}, got "
                    f"{fields[0][:40]!r}",
                    "Correct the line, with an empty line before each sentence, or pass "
                    "`word_column`.",
                )
                break
    lines.leave_out()


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
