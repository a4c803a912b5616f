"""Reads entities that stand in brackets over several lines, as CoNLL-2005 and CoNLL-2012 have them.

| word | in the file | read as |
| --- | --- | --- |
| Ada | (PERSON* | B-PERSON |
| Lovelace | *) | I-PERSON |
| visited | * | O |
| Rio | (GPE) or (GPE*) | B-GPE |
"""

import re

from keras_bert_suite.heads.tags.tag_forms import OUTSIDE

_OPEN = re.compile(r"\((?P<kind>[^()*|]+)(?P<end>\*\)|\*|\))")


_CLOSE = "*)"
_EMPTY = "*"


def are_brackets(tags):
    """Whether all tags of a column are brackets that this module reads."""
    opened = [_OPEN.fullmatch(tag) for tag in tags if tag not in (_EMPTY, _CLOSE)]
    return 0 < len(opened) < len(tags) and all(opened)


def read_brackets(lines, sentences):
    """Turns brackets into tags of the scheme BIO. Other tags stay as they are.

    Args:
        lines: `ConllLines`. It refuses a line whose bracket lies within another or does not close,
            or whose tag has none.
        sentences: list of lists of `(line number, tag)`.

    Returns:
        list of lists of tags.
    """
    tags = {tag for sentence in sentences for _, tag in sentence}
    if not any(map(_OPEN.fullmatch, tags)) or not any("*" in tag for tag in tags):
        return [[tag for _, tag in sentence] for sentence in sentences]
    return [_read_sentence(lines, sentence) for sentence in sentences]


def _read_sentence(lines, sentence):
    tags, kind = [], None
    for line, tag in sentence:
        found = _OPEN.fullmatch(tag)
        if found is not None and kind is None:
            kind = found["kind"]
            tags.append(f"B-{kind}")
        elif tag == _EMPTY or (tag == _CLOSE and kind is not None):
            tags.append(OUTSIDE if kind is None else f"I-{kind}")
        else:
            _refuse(lines, line, f"{tag!r} {'within' if kind else 'without'} an open bracket")
            return [tag for _, tag in sentence]
        if tag.endswith(")"):
            kind = None
    if kind is not None:
        _refuse(lines, line, f"the end of a sentence within the brackets of {kind!r}")
    return tags


def _refuse(lines, line, got):
    lines.refuse(
        line,
        "brackets that are not read",
        f"got {got}",
        "Tags in brackets are read if they are (TYPE*, *, *) and (TYPE), without brackets within "
        "brackets. Correct the line, or name the column of the tags by `tag_column`.",
    )
