"""Compares answers by characters, for languages without spaces between words.

Sources: cmrc2018_evaluate.py of https://github.com/ymcui/cmrc2018, which its authors also use for
DRCD; evaluate-v1.0.py of https://korquad.github.io.
"""

import collections
import re
import string

#: The characters that the script of CMRC 2018 drops. An ellipsis stays.
_CHINESE_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CHINESE = re.compile("([\u4e00-\u9fa5])")

#: The endings that the tokenizer of the Penn Treebank splits off a word. The script of CMRC 2018
#: splits text between Chinese characters by it, as NLTK's `word_tokenize` does.
_OPENING_QUOTE = re.compile(r"""(^|[ (\[{<])("|'')""")
_ENGLISH_MARKS = re.compile(
    r"""((?:(?<=\s)|^)'(?=\w)|\.{2,}|--|``|[;@#$%&?!()\[\]{}<>"»”’“‘„—]|,(?!\d))"""
)
_LAST_PERIOD = re.compile(r"""(?<!\.)(\.)([\])}>"'»”’ ]*)$""")
_ENGLISH_ENDINGS = re.compile(r"(?<=[^' ])('s|'m|'d|'ll|'re|'ve|n't|')(?= |$)")

_KOREAN_SPACES = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def match_chinese(reference, prediction):
    """1.0 if two answers are equal without their punctuation, else 0.0."""
    return float(_clean_chinese(reference) == _clean_chinese(prediction))


def compute_chinese_f1(reference, prediction):
    """F1 of the longest run of characters that two answers have in common, from 0 to 1.

    Words between Chinese characters count as one character.

    >>> compute_chinese_f1("1990年的", "1990年")
    0.8
    """
    reference, prediction = split_chinese(reference), split_chinese(prediction)
    common = _find_longest_run(reference, prediction)
    return 2 * common / (len(reference) + len(prediction)) if common else 0.0


def split_chinese(text):
    """Splits an answer into Chinese characters, and words of other scripts.

    >>> split_chinese("他在IBM, 1,000天。")
    ['他', '在', 'ibm', ',', '1,000', '天']
    """
    tokens = []
    for place, part in enumerate(_CHINESE.split(_clean_chinese(text))):
        tokens += [part] if place % 2 else _split_english(part)
    return tokens


def match_korean(reference, prediction):
    """1.0 if two answers are equal without punctuation and surplus spaces, else 0.0."""
    return float(_clean_korean(reference) == _clean_korean(prediction))


def compute_korean_f1(reference, prediction):
    """F1 of the characters of two answers, in any order, from 0 to 1.

    >>> compute_korean_f1("교향곡", "교향곡을")
    0.8571428571428571
    """
    reference, prediction = (
        collections.Counter("".join(_clean_korean(text).split()))
        for text in (reference, prediction)
    )
    common = (reference & prediction).total()
    return 2 * common / (reference.total() + prediction.total()) if common else 0.0


def _clean_chinese(text):
    return text.lower().strip().translate(_CHINESE_PUNCTUATION)


def _clean_korean(text):
    text = text.translate(_KOREAN_SPACES).lower().translate(_PUNCTUATION)
    return " ".join(text.split())


def _split_english(text):
    text = text.strip()
    if not text:
        return []
    for _ in range(2):  # A quote after an opening quote opens, too.
        text = _OPENING_QUOTE.sub(r"\1 `` ", text)
    text = _ENGLISH_MARKS.sub(r" \1 ", _LAST_PERIOD.sub(r" \1 \2", text))
    return _ENGLISH_ENDINGS.sub(r" \1", text).split()


def _find_longest_run(first, second):
    """int, the length of the longest run of tokens that two lists have in common."""
    places = collections.defaultdict(list)
    for place, token in enumerate(second):
        places[token].append(place)
    longest, runs = 0, {}
    for token in first:
        # The length of the run that ends at each place of `second`.
        runs = {place: runs.get(place - 1, 0) + 1 for place in places.get(token, ())}
        longest = max(longest, *runs.values(), 0)
    return longest
