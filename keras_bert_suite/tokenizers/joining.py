"""Joins words to a text as a reader writes it: a space between words, by the script beside it."""

from keras_bert_suite.tokenizers.unicode_rules import CJK, membership

#: The scripts that are written without spaces, with their punctuation: Chinese characters, kana,
#: bopomofo, full-width forms.
WITHOUT_SPACES = f"{CJK} 3000-303f 3040-312f 31a0-31bf 31f0-31ff fe30-fe4f ff01-ffef 1b000-1b16f"
#: Punctuation that follows a word, or precedes one, without a space.
CLOSING, OPENING = ".,!?;:)]}%…’”", "([{“‘$"
#: Punctuation between the parts of a word.
INNER = "'"

_WITHOUT_SPACES = membership(WITHOUT_SPACES)


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
    """
    text, is_close = "", True
    for word in words:
        text += ("" if is_close or follows_closely(word) else " ") + word
        is_close = precedes_closely(word)
    return text


def _joins(word, edge, marks):
    return bool(edge) and (bool(_WITHOUT_SPACES[ord(edge)]) or not word.strip(marks))
