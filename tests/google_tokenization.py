"""The original tokenizer's rules in plain Python, an oracle of Python's own Unicode version."""

import unicodedata

CJK_RANGES = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
]


def tokenize(text, vocabulary, lowercase):
    """str -> list of int. `vocabulary` is a list of str with "[UNK]" in it."""
    ids = {token: index for index, token in enumerate(vocabulary)}
    return [ids[piece] for word in split_words(text, lowercase) for piece in match(word, ids)]


def split_words(text, lowercase):
    """Basic tokenization: str -> list of str, none empty."""
    words = []
    for token in "".join(map(clean_character, text)).split():
        if lowercase:
            decomposed = unicodedata.normalize("NFD", token.lower())
            token = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        spaced = "".join(f" {c} " if is_punctuation(c) else c for c in token)
        words.extend(spaced.split())
    return words


def clean_character(character):
    code = ord(character)
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    # Lone surrogates are no text; the original met none.
    if code in (0, 0xFFFD) or category in ("Cc", "Cf", "Cs"):
        return ""
    if any(first <= code <= last for first, last in CJK_RANGES):
        return f" {character} "
    return character


def is_punctuation(character):
    is_ascii_symbol = 33 <= ord(character) <= 126 and not character.isalnum()
    return is_ascii_symbol or unicodedata.category(character).startswith("P")


def match(word, ids):
    """Greedy longest match: str -> list of str."""
    if len(word) > 200:
        return ["[UNK]"]
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in ids), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces
