"""Finds the columns of the words and of the tags in `ConllLines`."""

import re

from keras_bert_suite.heads.tags.conll.lines import CONLLU


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
    """Leaves out sentences with a line of more or fewer fields than the others.

    If both columns count from the first, each sentence may have its number of fields: CoNLL-2012
    has a column for each verb.

    Args:
        lines: `ConllLines`.
        word, tag: int, from `choose_columns`.

    Raises:
        ValueError: as `RowFaults.keep`.
    """
    fewest = max(2, *(column + 1 if column >= 0 else -column for column in (word, tag)))
    first = lines.sentences[0][0]
    for sentence in lines.sentences:
        # A space within a field may stand for a tab, in a sentence of one word, too.
        is_fixed = min(word, tag) < 0 or any(" " in field for _, row in sentence for field in row)
        number, fields = first if is_fixed else sentence[0]
        wanted = len(lines.names or fields)
        for line, fields in sentence:
            reason, got = "another number of fields", f"got {len(fields)} fields"
            if len(fields) < fewest:
                got += f", wanted at least {fewest}, a word and its tag among them, with tabs or "
                lines.refuse(line, reason, f"{got}spaces between", "Correct the line.")
            elif len(fields) != wanted:
                has = f"line {number} has" if lines.names is None else "the names of columns are"
                remedy = "between two fields is a tab, or a space in a file without tabs."
                if lines.names is None and min(word, tag) < 0:
                    remedy += " If sentences have columns of their own, as in CoNLL-2012, pass "
                    remedy += "`word_column` and `tag_column` that count from 1."
                got += f", {str(fields)[:200]}, and {has} {wanted}, so its columns may be shifted"
                lines.refuse(line, reason, got, f"Correct the line: {remedy}")
    lines.leave_out()


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
