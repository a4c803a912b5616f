"""Joins words to a text as a reader writes it.

A space stands between two words, unless the script or the mark beside it forbids it. Then `RULES`
correct the spaces of marks that stand otherwise between some words, such as the point of a decimal.
"""

import re

from keras_bert_suite.tokenizers.unicode_rules import CJK, membership, python_class

#: The scripts that are written without spaces, with their punctuation: Chinese characters, kana,
#: bopomofo, full-width forms.
WITHOUT_SPACES = f"{CJK} 3000-303f 3040-312f 31a0-31bf 31f0-31ff fe30-fe4f ff01-ffef 1b000-1b16f"
#: Punctuation that follows a word, or precedes one, without a space.
CLOSING, OPENING = ".,!?;:)]}%…’”", "([{“‘$"
#: Punctuation between the parts of a word, such as "wi-fi", "and/or", "2*3".
INNER = "-/_@*~\\"

#: Pairs (pattern, replacement), in the syntax that `re` and RE2 have in common. Where words do not
#: tell the right form, a pattern stands for the more frequent one. The numbers are how often a
#: pattern makes spaces right, and how often wrong, in 4.6 million words of English (Wikipedia, RTE,
#: reviews, speeches) and 3 million characters of Chinese reviews.
RULES = (
    # 3.5, 12:30: 2885 and 60. 2020–2021: 829 and 29.
    (r"([0-9])([.:]) ([0-9])", r"\1\2\3"),
    (r"([0-9]) – ([0-9])", r"\1–\2"),
    # one—two: 983 and 191. In other scripts, as in Russian, it has spaces.
    (r"([!-~]) — ([!-~])", r"\1—\2"),
    # 1,299: 1937 and 35. Without three digits the numbers are a list.
    (r"([0-9]), ([0-9]{3})\b", r"\1,\2"),
    # U.S., a.m.: 1992 and 229, the initials of names.
    (r"\b([A-Za-z])\. ([A-Za-z])\.", r"\1.\2."),
    # AT&T: 74 and 10. Between words of several letters it is rare: 3 and 240.
    (r"([A-Za-z]) & ([A-Za-z])\b", r"\1&\2"),
    # C++, C#, and #1 or a tag.
    (r" \+ \+", "++"),
    (r"\b([A-Za-z]) #( |$)", r"\1#\2"),
    (r"(^| )# ", r"\1#"),
    # A sign before a number: 29 and 3.
    (r"(^|[A-Za-z]{2} )\+ ([0-9])", r"\1+\2"),
    # don't: 14777 and 0.
    (r"([^ ]) ?(['’]) ?(s|t|d|m|re|ve|ll|S|T|D|M|RE|VE|LL)\b", r"\1\2\3"),
    # O'Neill: 223 and 1.
    (r"\b([A-Za-z]) ' ([A-Za-z])", r"\1'\2"),
    # students' work: 1250 and 124.
    (r"([Ss]) ' ", r"\1' "),
    # Words between two quotes: 22185 and 684, 867 and 69.
    (r'" ?([^" ]|[^" ][^"]*[^" ]) ?"', r'"\1"'),
    (r"(^| )' ([^' ]|[^' ][^']*[^' ]) '", r"\1'\2'"),
    # years'. (177 and 0)
    (r" '([.,!?;:)])", r"'\1"),
)
#: Further pairs for texts with more characters of `WITHOUT_SPACES` than `OTHER_WORDS`, such as
#: "令x=1+2": 3580 and 27. There a space follows only a comma between words of other scripts.
RULES_WITHOUT_SPACES = (
    (r" ([!-+\--/:-@\[-`{-~–—…])", r"\1"),
    (r"([!-+\--/:-@\[-`{-~–—…]) ", r"\1"),
    (r", ([0-9])", r",\1"),
    (r"([^ -~]), ", r"\1,"),
)
#: Two letters or more, in a script with spaces. The class of `WITHOUT_SPACES` goes into it.
OTHER_WORDS = r"[^ -@\[-`{{-~{}]{{2,}}"

_WITHOUT_SPACES = membership(WITHOUT_SPACES)
_COMPILED = tuple(
    tuple((re.compile(pattern, re.ASCII), replacement) for pattern, replacement in rules)
    for rules in (RULES, RULES_WITHOUT_SPACES)
)
_OTHER_SCRIPTS = re.compile(f"[^{python_class(WITHOUT_SPACES)}]")
_OTHER_WORDS = re.compile(OTHER_WORDS.format(python_class(WITHOUT_SPACES)))


def follows_closely(word):
    """Whether no space is written before a word.

    >>> follows_closely("!"), follows_closely("京"), follows_closely("York")
    (True, True, False)
    """
    return _joins(word, word[:1], CLOSING + INNER)


def precedes_closely(word):
    """Whether no space is written after a word."""
    return _joins(word, word[-1:], OPENING + INNER)


def join_words(words):
    """Joins words to a text.

    >>> join_words(["New", "York", "!"]), join_words(["我", "在", "IBM", "工", "作"])
    ('New York!', '我在IBM工作')
    >>> join_words(["up", "3", ".", "5", "%", "in", "2020", "-", "2021"])
    'up 3.5% in 2020-2021'
    """
    text, is_close = "", True
    for word in words:
        text += ("" if is_close or follows_closely(word) else " ") + word
        is_close = precedes_closely(word)
    return correct_spaces(text)


def correct_spaces(text):
    """Applies the `RULES` to a text of joined words.

    >>> correct_spaces("3. 5"), correct_spaces("x = 1 + 2"), correct_spaces("令x = 1 + 2得解")
    ('3.5', 'x = 1 + 2', '令x=1+2得解')

    Each pair of `RULES` is applied twice, since a word may stand between two marks. In a graph
    `correct_spaces` of `serving.target_answers` does the same.
    """
    general, without_spaces = _COMPILED
    for pattern, replacement in general:
        text = pattern.sub(replacement, pattern.sub(replacement, text))
    if is_without_spaces(text):
        for pattern, replacement in without_spaces:
            text = pattern.sub(replacement, text)
    return text


def is_without_spaces(text):
    """Whether a text is written in a script without spaces, rather than in words.

    >>> is_without_spaces("华为发布Mate 40 Pro"), is_without_spaces("Huawei (华为) is a company")
    (True, False)
    """
    return len(_OTHER_SCRIPTS.sub("", text)) > len(_OTHER_WORDS.findall(text))


def _joins(word, edge, marks):
    return bool(edge) and (bool(_WITHOUT_SPACES[ord(edge)]) or not word.strip(marks))
