"""The parts of texts of which `WordCutting` makes words: runs of letters, and punctuation."""

import functools
import re

import numpy as np

from keras_bert_suite.tokenizers.byte_pair.character_classes import LETTERS, NUMBERS
from keras_bert_suite.tokenizers.unicode14 import NONSPACING
from keras_bert_suite.tokenizers.unicode_rules import CJK, DELETED, PUNCTUATION, SPACE, membership

#: The kinds of characters. All other characters are letters. Attached characters, such as accents
#: and spaces of no width, belong to the character before them.
BLANK, ATTACHED, LETTER, NUMBER, IDEOGRAPH, MARK, SIGN = range(7)

#: The blocks of currency signs, arrows, symbols and emoji; letters and numbers in them are none.
SIGNS = (
    "a2-a9 ac ae-b1 b4 b8 d7 f7 2044 2052 207a-207c 208a-208c 20a0-20c0 2100-214f 2190-2426 "
    "2440-244a 249c-24e9 2500-2767 2794-2bff 1f000-1faff"
)

#: The names of parts that may be cut into single characters, and their kinds.
CLASSES = {"letters": (LETTER, SIGN), "numbers": (NUMBER,)}

#: The names in rules of the neighbours of punctuation, by kind. An edge of a text has no name.
KIND_NAMES = {LETTER: "<letter>", NUMBER: "<number>", IDEOGRAPH: "<ideograph>"}

#: English contractions that corpora write as two words: "do", "n't".
NEGATION = re.compile("(?i)n['’]t")


@functools.cache
def character_kinds():
    """uint8 (0x110000,), the kind of each character."""
    kinds = np.full(0x110000, LETTER, "uint8")
    kinds[membership(SIGNS) & ~membership(LETTERS)] = SIGN
    for table, kind in (
        (NUMBERS, NUMBER),
        (PUNCTUATION, MARK),
        (CJK, IDEOGRAPH),
        (NONSPACING, ATTACHED),
        (DELETED, ATTACHED),
        (SPACE, BLANK),
    ):
        kinds[membership(table)] = kind
    return kinds


def find_kinds(text):
    """list of int, the kind of each character of a text."""
    kinds = _kinds_as_bytes()
    return [kinds[ord(c)] for c in text]


@functools.cache
def _kinds_as_bytes():
    return character_kinds().tobytes()  # For few characters it is faster than an array.


def find_alone(classes):
    """list of 7 bool, the kinds of which each character is a word, without a rule for it.

    `classes` are names of `CLASSES`.
    """
    kinds = {IDEOGRAPH, MARK, *(kind for name in classes for kind in CLASSES[name])}
    return [kind in kinds for kind in range(7)]


def list_keys(left, marks, right):
    """The keys of rules for marks between two words, from the most special one."""
    left_kind, right_kind = name_kind(left[-1:]), name_kind(right[:1])
    sides = (left, right), (left, right_kind), (left_kind, right), (left_kind, right_kind)
    return [f"{before} {marks} {after}" for before, after in sides]


def name_kind(character):
    """The name that rules have for a character, "" for none."""
    return KIND_NAMES[find_kinds(character)[0]] if character else ""


def find_negations(text):
    """set of int, the places where a `n't` begins that ends a word."""
    kinds = find_kinds(text)
    ends = [*kinds, MARK]
    return {
        start
        for start, end in (match.span() for match in NEGATION.finditer(text))
        if start and kinds[start - 1] == LETTER and ends[end] not in (LETTER, NUMBER)
    }


def list_segments(text, alone, runs, negations=()):
    """list of (start, end, whether it is punctuation), the parts of a text without white space.

    A part is a run of punctuation, or without `runs` of one mark; a character that stands alone, of
    the kinds in `alone`; or what is between these. One also begins at each of `negations`.
    """
    kinds = find_kinds(text)
    are_marks = [kind in (MARK, SIGN) for kind in kinds]
    starts = [
        i
        for i in range(len(text))
        if i == 0
        or are_marks[i] != are_marks[i - 1]
        or i in negations
        or (
            (not runs and text[i] != text[i - 1])
            if are_marks[i]
            else alone[kinds[i]] or alone[kinds[i - 1]]
        )
    ]
    ends = [*starts[1:], len(text)]
    return [(start, end, are_marks[start]) for start, end in zip(starts, ends, strict=True)]


def find_marks(segments):
    """Yields (left, marks, right) for each part that is punctuation.

    `left` and `right` are the (start, end) of the parts beside it, empty for punctuation or none.
    """
    nothing = (0, 0)
    for number, segment in enumerate(segments):
        if segment[2]:
            before = segments[number - 1] if number else (*nothing, True)
            after = segments[number + 1] if number + 1 < len(segments) else (*nothing, True)
            yield (
                nothing if before[2] else before[:2],
                segment,
                nothing if after[2] else after[:2],
            )
