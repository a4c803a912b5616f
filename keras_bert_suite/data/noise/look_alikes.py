"""Characters that look alike: to a scanner, and to a reader."""

#: What optical character recognition takes for what, one or two characters at a time.
OCR_GROUPS = (
    *("0oOQD", "1lI|", "1!", "5S", "5s", "8B", "8&", "6b", "6G", "9gq", "2zZ", "CG", "ce", "uv"),
    *("EF", "hb", "hn", "ft", "it", "il", "ij", "rk", "UV", "O@", "TY", "PR", "MN"),
)
OCR_PAIRS = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("ii", "u"), ("li", "h"), ("nn", "m"))

#: A Latin letter or a digit -> characters of other scripts that are drawn like it.
HOMOGLYPHS = {
    **{"a": "аɑ", "b": "Ь", "c": "сϲ", "d": "ԁ", "e": "е", "g": "ɡ", "h": "һ", "i": "і", "j": "јϳ"},
    **{"l": "ӏ", "n": "ո", "o": "оο", "p": "р", "q": "ԛ", "s": "ѕ", "u": "ս", "v": "ѵν", "w": "ԝ"},
    **{"x": "х", "y": "у", "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "ІΙ"},
    **{"J": "Ј", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ", "S": "Ѕ", "T": "ТΤ"},
    **{"V": "Ѵ", "X": "ХΧ", "Y": "ҮΥ", "Z": "Ζ", "0": "О", "3": "З", "6": "б"},
}


def _pair_up():
    """dict of one or two characters -> tuple of what they are taken for."""
    found: dict[str, dict[str, None]] = {}
    pairs = [*((a, b) for group in OCR_GROUPS for a in group for b in group if a != b), *OCR_PAIRS]
    for a, b in [*pairs, *((b, a) for a, b in OCR_PAIRS)]:
        found.setdefault(a, {})[b] = None
    return {character: tuple(others) for character, others in found.items()}


#: One or two characters -> tuple of what optical character recognition takes them for.
OCR_CONFUSIONS = _pair_up()
