"""Checks the tags of a file in CoNLL's form."""

import re
import warnings

from keras_bert_suite.heads.tags.tag_forms import OUTSIDE, find_strangers, split_tags
from keras_bert_suite.heads.tags.tag_schemes import find_agreeing

_TAG_COLUMN = "`tag_column` names the column of the tags."

#: How a type of entities may be written beside tags such as B-PER.
_TYPE = re.compile(r"(?=.*[A-Z])[A-Z0-9_.:+-]+")


def check_tags(lines, word_column, tag_column, max_tags, is_named):
    """Leaves out sentences with tags that are likely no tags.

    Args:
        lines: `ConllLines`.
        word_column, tag_column: int, from `choose_columns`.
        max_tags: int.
        is_named: bool, whether the user named the column.

    Raises:
        ValueError: if there are more tags, naming a line; or as `RowFaults.keep`.
    """
    rows = [
        (line, fields[word_column], fields[tag_column])
        for sentence in lines.sentences
        for line, fields in sentence
    ]
    located = {}
    for line, word, tag in rows:
        located.setdefault(tag, (line, word))
    if len(located) > max_tags:
        tag, (line, word) = list(located.items())[max_tags]
        raise ValueError(
            f"{lines.path} has {len(located)} different tags, more than {max_tags}. Number "
            f"{max_tags + 1} is {tag[:40]!r} of the word {word[:40]!r} in line {line}. "
            f"{_TAG_COLUMN} If these are tags, pass max_tags={len(located)}."
        )
    no_tags = set(_find_no_tags(located, is_named))
    for line, word, tag in rows:
        if tag in no_tags:
            lines.refuse(
                line,
                "a tag that is likely none",
                f"{tag[:40]!r} is the tag of {word[:40]!r}, and is likely a word, a comment or an "
                "empty field: it has no letter such as B or I, as tags of entities have",
                f"Correct the line, with O outside of entities. If {tag[:40]!r} says that a word "
                f"is outside of entities, pass outside={tag[:40]!r}. {_TAG_COLUMN} If the line has "
                "the names of the columns, pass these names.",
            )
    lines.leave_out()


def warn_of_mixed_schemes(path, tags, lines):
    """Warns once if some sentences are tagged in one scheme and some in another.

    Args:
        path: str or path.
        tags: list of N lists of tags.
        lines: list of N int, the first line of each sentence.
    """
    letters = {letter for letter, _ in split_tags({tag for row in tags for tag in row}).values()}
    if not letters & set("MELSU"):
        return
    agreeing = find_agreeing(tags, ("BIO", "BIOES", "BMES"))
    most = max(agreeing, key=lambda scheme: sum(agreeing[scheme]))
    others = {
        scheme: [
            line
            for line, is_other, is_most in zip(lines, agrees, agreeing[most], strict=True)
            if is_other and not is_most
        ]
        for scheme, agrees in agreeing.items()
    }
    scheme = max(others, key=lambda scheme: len(others[scheme]))
    if others[scheme]:
        warnings.warn(
            f"{path}: {len(others[scheme])} of {len(tags)} sentences are tagged in {scheme}, and "
            f"most in {most}. The first is in line {others[scheme][0]}. A model would learn "
            f"several labels for one thing, so pass scheme={most!r}, which converts all tags.",
            stacklevel=3,
        )


def _find_no_tags(tags, is_named):
    """The tags that are likely no tags: words, names of columns, or "0" outside of entities."""
    if "" in tags:
        return [""]
    split = split_tags(tags)
    letters = {letter for letter, _ in split.values()}
    lone = [tag for tag, (letter, _) in split.items() if letter is None]
    if letters <= {OUTSIDE, None}:
        # Types alone. In a column that the user named, they may be any tags of words.
        return [] if is_named else [tag for tag in lone if not any(map(str.isalpha, tag))]
    others = [tag for tag in lone if not _TYPE.fullmatch(tag)]
    # Without O, a tag in no form says what is outside: OTHER.
    return others if OUTSIDE in letters else [tag for tag in lone if _has_no_form(tag)] or others


def _has_no_form(tag):
    return not find_strangers([tag])
