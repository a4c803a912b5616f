"""The rules of BERT's original tokenizer for each character, frozen at Unicode 14.

They are the one source for both engines. The eager engine applies `CharacterMap` and the regular
expressions. The TensorFlow engine compiles `CharacterMap` into a trie.

`unicodedata` is asked for canonical decompositions and combining classes only, and only of
characters that Unicode 14 assigns. The stability policy of Unicode says that these never change.
Categories and case mappings may change, so they come from the frozen tables.
"""

import functools
import itertools
import re
import unicodedata

import numpy as np

from keras_bert_suite.tokenizers import unicode14

# Categories Zs, Zl and Zp, and the three controls that count as spaces.
SPACE = "9-a d 20 a0 1680 2000-200a 2028-2029 202f 205f 3000"
ASCII_SYMBOLS = "21-2f 3a-40 5b-60 7b-7e"
PUNCTUATION = f"{ASCII_SYMBOLS} {unicode14.PUNCTUATION}"
# Controls and formats, the replacement character, lone surrogates.
DELETED = unicode14.CONTROL + " d800-dfff fffd"
# The eight ranges whose characters, assigned or unassigned, are words.
CJK = "3400-4dbf 4e00-9fff f900-faff 20000-2a6df 2a700-2b73f 2b740-2b81f 2b820-2ceaf 2f800-2fa1f"
# Combining marks (category Mc) that canonical order may move. Accent stripping keeps them.
VISIBLE_MARKS = (
    "1715 1734 1b44 1baa 1bf2-1bf3 302e-302f a953 a9c0 111c0 11235 1134d 116b6 1193d "
    "16ff0-16ff1 1d165-1d166 1d16d-1d172"
)


def parse_ranges(table):
    """Parses a table such as "41-43 61" to pairs [(0x41, 0x43), (0x61, 0x61)]."""
    pairs = (item.partition("-") for item in table.split())
    return [(int(first, 16), int(last or first, 16)) for first, _, last in pairs]


def python_class(table):
    """The inside of a bracket expression of Python's `re`: "41-43" -> "\\U00000041-\\U00000043"."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in parse_ranges(table))


def re2_class(table):
    """The inside of a bracket expression of RE2: "41-43" -> "\\x{41}-\\x{43}"."""
    return "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in parse_ranges(table))


@functools.cache
def membership(table):
    """bool (0x110000,), the code points that the table holds."""
    flags = np.zeros(0x110000, dtype=bool)
    for first, last in parse_ranges(table):
        flags[first : last + 1] = True
    return flags


@functools.cache
def find_lone():
    """bool (0x110000,), the characters that are words by themselves."""
    return membership(PUNCTUATION) | membership(CJK)


@functools.cache
def lowercase_map():
    """dict of code point -> str for every character that `str.lower` of Unicode 14 changes."""
    pattern = re.compile(r"(\w+)-(\w+)/(\d)([+-]\w+)")
    lowered = {0x130: "i\u0307"}
    for first, last, step, distance in pattern.findall(unicode14.LOWERCASE):
        for code in range(int(first, 16), int(last, 16) + 1, int(step)):
            lowered[code] = chr(code + int(distance, 16))
    return lowered


class CharacterMap(dict):
    """dict of code point -> str, filled when a code point is looked up. `str.translate` takes it.

    It cleans, lowers and strips accents in one step: U+00C9 -> "e", U+200B -> "", U+3000 -> " ".
    Rules that depend on neighbours are not in it: the final sigma, the order of combining marks,
    spaces around CJK.
    """

    def __init__(self, lowercase, strip_accents):
        super().__init__()
        self.lowercase = lowercase
        self.strip_accents = strip_accents

    def __missing__(self, code):
        if membership(DELETED)[code]:
            text = ""
        elif membership(SPACE)[code]:
            text = " "
        else:
            text = self._decompose(code)
            if self.strip_accents:
                text = strip_nonspacing(text)
        self[code] = text
        return text

    def _decompose(self, code):
        text = lowercase_map().get(code, chr(code)) if self.lowercase else chr(code)
        if self.strip_accents and not membership(unicode14.UNASSIGNED)[code]:
            text = unicodedata.normalize("NFD", text)
        return text

    def normalize_in_order(self, segment):
        """One segment with its combining marks in canonical order, and each character's origin.

        The origins are indices in `segment`. Marks that change places have the origin of the first
        mark.
        """
        parts = []
        for index, character in enumerate(segment):
            if self[ord(character)] or membership(unicode14.NONSPACING)[ord(character)]:
                for part in self._decompose(ord(character)):
                    assigned = not membership(unicode14.UNASSIGNED)[ord(part)]
                    parts.append((part, index, unicodedata.combining(part) if assigned else 0))
        characters, origins = [], []
        for moves, run in itertools.groupby(parts, lambda part: part[2] > 0):
            visible = [part for part in run if strip_nonspacing(part[0])]
            ordered = sorted(visible, key=lambda part: part[2]) if moves else visible
            moved = ordered != visible
            for character, index, _ in ordered:
                characters.append(character)
                origins.append(visible[0][1] if moved else index)
        return "".join(characters), origins


def strip_nonspacing(text):
    """Drops characters of category Mn."""
    nonspacing = membership(unicode14.NONSPACING)
    return "".join(character for character in text if not nonspacing[ord(character)])


class FinalSigma:
    """Lowers each capital sigma as `str.lower` does: "ΟΔΟΣ" -> "ΟΔΟς".

    A sigma that follows a letter, and that no letter follows, becomes the final form. The length of
    the text stays the same, in characters and in bytes.

    Args:
        write_patterns: function of `python_class` or `re2_class`. It returns three patterns: passed
            characters up to a letter, passed characters, and a letter before them.
    """

    def __init__(self, write_patterns):
        self._write_patterns = write_patterns

    @functools.cached_property
    def _python_patterns(self):
        begins, passed, ends = self._write_patterns(python_class)
        return re.compile(f"Σ(?={begins})"), re.compile(f"({ends}{passed})Σ")

    def apply(self, text):
        """str -> str."""
        if "Σ" not in text:
            return text
        inner, final = self._python_patterns
        return final.sub("\\1ς", inner.sub("σ", text)).replace("Σ", "σ")

    def apply_in_graph(self, texts):
        """tf.string (B,) -> tf.string (B,)."""
        import tensorflow as tf

        begins, passed, ends = self._write_patterns(re2_class)
        replace = tf.strings.regex_replace

        def has_sigma(texts):
            return tf.strings.length(replace(texts, "Σ", "")) < tf.strings.length(texts)

        def lower():
            rows = tf.where(has_sigma(texts))
            found = tf.gather_nd(texts, rows)
            # A sigma that ends a match is hidden from this pass, but not from the next.
            lowered = replace(replace(found, f"Σ({begins})", r"σ\1"), f"Σ({begins})", r"σ\1")
            lowered = replace(replace(lowered, f"({ends}{passed})Σ", r"\1ς"), "Σ", "σ")
            return tf.tensor_scatter_nd_update(texts, rows, lowered)

        # Most batches have no sigma. One search in all rows together finds this out fastest.
        return tf.cond(has_sigma(tf.strings.reduce_join(texts)), lower, lambda: texts)


def _write_sigma_patterns(write_class):
    # Google's code deletes some characters before it lowers the text.
    cased, passed = map(write_class, (unicode14.CASED, unicode14.CASE_IGNORABLE + DELETED))
    return f"[{passed}]*[{cased}]", f"[{passed}]*", f"[{cased}]"


#: The rule of BERT's original tokenizer, for parts of a text without a space. Texts may be
#: normalized first, because normalization turns no cased character into an uncased one, nor the
#: other way round. The same holds for the characters that the rule passes over.
FINAL_SIGMA = FinalSigma(_write_sigma_patterns)
