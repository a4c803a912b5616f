"""Splits files in CoNLL's form into the lines of words."""

import collections
import dataclasses
import itertools
import re

from keras_bert_suite.data.readers.row_faults import RowFaults
from keras_bert_suite.data.readers.text_files import split_lines
from keras_bert_suite.heads.tags.conll.sentence_lines import read_sentence_lines
from keras_bert_suite.heads.tags.tag_forms import split_tags

#: Why a line of CoNLL-U is left out: its word is written in the lines after it, or not at all.
MULTIWORD, EMPTY = "a row of several words", "an empty node"

_EXTRA_ROWS = {MULTIWORD: re.compile(r"\d+-\d+"), EMPTY: re.compile(r"\d+\.\d+")}

#: The columns of CoNLL-U, https://universaldependencies.org/format.html.
CONLLU = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
_COLUMNS_COMMENT = re.compile(r"# *global\.columns *= *(.*)")


@dataclasses.dataclass
class ConllLines:
    """The lines of words of a file.

    Attributes:
        path: str or path.
        sentences: list of lists of `(line number, fields)`.
        faults: `RowFaults`, whose rows are numbers of lines.
        names: list of str, the names of the columns, or None.
        is_numbered: bool, whether the first column counts the words of each sentence.
        left_out: dict of a reason -> list of line numbers.
    """

    path: object
    sentences: list
    faults: RowFaults
    names: list | None = None
    is_numbered: bool = False
    left_out: dict = dataclasses.field(default_factory=dict)

    def refuse(self, line, reason, got, remedy):
        """Adds a fault of a line with a word; see `RowFaults.add_line`."""
        self.faults.rows.add(line)
        self.faults.add_line(line, reason, got, remedy)

    def leave_out(self):
        """Drops the sentences with a refused line. Raises a ValueError as `RowFaults.keep`."""
        if not self.faults.places:
            return
        refused = self.faults.rows
        self.sentences[:] = [
            rows for rows in self.sentences if not any(line in refused for line, _ in rows)
        ]
        self.faults.keep([rows[0][0] for rows in self.sentences])


def read_conll_lines(path, text, errors):
    """Splits a text into `ConllLines`.

    Between the fields of a file are tabs, or spaces if most lines have no tab. A blank line or a
    document mark (-DOCSTART-) ends a sentence. A line before the first word of a sentence is a
    comment if it begins with # and is not a word with its fields: it has more or fewer fields than
    the other lines, or its last field is no tag that other lines have.

    A line has a fault if it has no tab and most have one, or the reverse; or if a comment stands
    within a sentence, before it.

    Raises:
        ValueError: if there are no words; or for faults, see `RowFaults.keep`.
    """
    faults = RowFaults(str(path), errors)
    lines = list(enumerate(split_lines(text), 1))
    sentences = read_sentence_lines([row for row in lines if row[1].strip()], faults)
    if sentences is not None:
        read = ConllLines(path, sentences, faults)
        read.leave_out()
        return read
    words = [line for _, line in lines if line.strip() and not _may_be_no_word(line)]
    has_tabs = 0 < len(words) <= 2 * sum(map(_has_tabs, words))
    fields_of = _split_tabs if has_tabs else _split_spaces
    width = _count_fields([fields_of(line) for line in words])
    tags = {fields[-1] for fields in (fields_of(line, width) for line in words) if fields}
    read, is_open = ConllLines(path, [], faults), False
    sentences = read.sentences
    for number, line in lines:
        if not line.strip() or line.upper().startswith("-DOCSTART-"):
            is_open = False
            continue
        fields = fields_of(line, width)
        if line.startswith("#") and not _is_word(fields, width, tags):
            if is_open:
                faults.rows.add(sentences[-1][-1][0])
                faults.add_line(
                    number,
                    "a comment within a sentence",
                    f"{line[:40]!r} begins with # and does not have the {width} fields of a word "
                    "and its tag",
                    "If it is a comment before the next sentence, put an empty line before it. A "
                    "comment within a sentence must go.",
                )
            found = _COLUMNS_COMMENT.fullmatch(line)
            read.names = found[1].split() if found else read.names
            continue
        if "\t" not in line if has_tabs else _has_tabs(line):
            read.refuse(
                number,
                "other marks between fields",
                f"the line {line[:40]!r} has {'no' if has_tabs else 'a'} tab, and other lines have "
                f"{'tabs' if has_tabs else 'spaces'} between their fields",
                "Put the same between the fields of all lines.",
            )
        if not is_open:
            sentences.append([])
            is_open = True
        sentences[-1].append((number, fields))
    if not sentences:
        raise ValueError(f"{path} holds no sentences: wanted a word and its tag in each line.")
    read.leave_out()
    _drop_extra_rows(read)
    return read


def count_places(sentence):
    """The numbers that count the words of a sentence, from 0 or 1, as list of str."""
    first = 0 if sentence[0][1][0] == "0" else 1
    return [str(place) for place in range(first, first + len(sentence))]


def _may_be_no_word(line):
    return line.startswith("#") or line.upper().startswith("-DOCSTART-")


def _has_tabs(line):
    """Whether tabs are between fields, and do not only stand after fields with spaces between."""
    return "\t" in (line.rstrip() if " " in line.strip() else line)


def _is_word(fields, width, tags):
    """Whether the fields of a line that begins with # are a word and its tag."""
    if len(fields) != width:
        return False
    ((letter, _),) = split_tags(fields[-1:]).values()
    # The Penn Treebank gives the tag # to the word # and to hashtags.
    return fields[-1] in tags or letter is not None or fields[-1] == "#"


def _count_fields(rows):
    """The number of fields of most lines, without the last fields if no line has text in them."""
    if not rows:
        return 0
    ((width, _),) = collections.Counter(map(len, rows)).most_common(1)
    while width > 1 and not any("".join(row[width - 1 :]) for row in rows):
        width -= 1
    return width


def _split_tabs(line, width=None):
    # A field of spaces alone is a word.
    fields = [field.strip(" ") or field for field in line.split("\t")]
    while width and len(fields) > width and not fields[-1]:
        fields.pop()
    return fields


def _split_spaces(line, width=None):
    fields = [field for field in line.rstrip("\t").split(" ") if field]
    # The word is a space, as in files with a character in each line.
    return [" ", *fields] if line.startswith(" ") and len(fields) + 1 == width else fields


def _drop_extra_rows(lines):
    """Drops the rows of CoNLL-U that are no words, if the first column counts."""
    extra = {}
    for sentence in lines.sentences:
        for number, fields in sentence:
            for reason, pattern in _EXTRA_ROWS.items():
                if pattern.fullmatch(fields[0]):
                    extra[number] = reason
    kept = [[row for row in sentence if row[0] not in extra] for sentence in lines.sentences]
    kept = [sentence for sentence in kept if sentence]
    has_names = _are_most(len(fields) == len(CONLLU) for rows in kept for _, fields in rows)
    lines.is_numbered = _are_most(_compare_places(kept, has_names))
    if not lines.is_numbered:
        return
    lines.sentences = kept
    for number, reason in extra.items():
        lines.left_out.setdefault(reason, []).append(number)
    if lines.names is None and has_names:
        lines.names = CONLLU


def _compare_places(sentences, has_names):
    """Whether the first field counts on from the line before, for each line that tells.

    The one word of a sentence may be a number itself, unless the file has the columns of CoNLL-U.
    """
    for sentence in sentences:
        if has_names or len(sentence) > 1:
            firsts = [fields[0] if len(fields) > 2 else "" for _, fields in sentence]
            yield firsts[0] in ("0", "1")
            for last, first in itertools.pairwise(firsts):
                if last.isdecimal():
                    yield first == str(int(last) + 1)


def _are_most(facts):
    facts = list(facts)
    return 2 * sum(facts) > len(facts)
