"""ALBERT's rules for text, as rules for characters that SentencePiece itself applies.

google-research/albert changes a text before it calls SentencePiece: spaces are joined, characters
are decomposed (NFKD), combining marks are dropped, letters are lowered. A SentencePiece model has a
table of replacements for sequences of characters. `compose_rules` makes one table of both, so that
the engines need no other step, and know where each piece was in the text.
"""

import functools
import itertools
import unicodedata

import numpy as np

from keras_bert_suite.tokenizers import unicode14
from keras_bert_suite.tokenizers.unicode_rules import FinalSigma, lowercase_map, membership

#: The spaces of `str.split`.
SPACES = "9-d 1c-20 85 a0 1680 2000-200a 2028-2029 202f 205f 3000"

#: transformers reads these as quotation marks; Google's code does not.
QUOTES = {"``": '"', "''": '"'}


class AlbertCharacters(dict):
    """dict of code point -> str, filled when a code point is looked up.

    Rules that depend on neighbours are not in it: the quotation marks and the final sigma.
    """

    def __init__(self, lowercase, strip_accents):
        super().__init__()
        self._lowercase = lowercase
        self._strip_accents = strip_accents

    def __missing__(self, code):
        text = self.decompose(code)
        if self._lowercase:
            text = "".join(lowercase_map().get(ord(c), c) for c in text)
        self[code] = text
        return text

    def decompose(self, code):
        """str, the character before it is lowered."""
        if membership(SPACES)[code]:
            return " "
        if not self._strip_accents or membership(unicode14.UNASSIGNED)[code]:
            return chr(code)
        text = unicodedata.normalize("NFKD", chr(code))
        return "".join(character for character in text if not unicodedata.combining(character))

    def find_changed(self):
        """list of int, the code points that do not stay as they are."""
        candidates = membership(SPACES).copy()
        if self._lowercase:
            candidates[list(lowercase_map())] = True
        if self._strip_accents:
            candidates |= _find_decomposed()
        return [code for code in np.flatnonzero(candidates).tolist() if self[code] != chr(code)]


@functools.cache
def _find_decomposed():
    """bool (0x110000,), combining marks and characters that NFKD decomposes."""
    found = np.zeros(0x110000, bool)
    found[0xAC00:0xD7A4] = True  # Hangul syllables, of which `decomposition` knows nothing.
    for code in np.flatnonzero(~membership(unicode14.UNASSIGNED)).tolist():
        character = chr(code)
        if unicodedata.combining(character) or unicodedata.decomposition(character):
            found[code] = True
    return found


def compose_rules(model_rules, characters, alphabet):
    """The rules, dict of str -> str, equal to ALBERT's rules followed by a model's rules.

    Of the rules of a SentencePiece model, the longest one that fits is applied at each position. A
    rule for several characters is left out if the `alphabet`, the characters of the vocabulary, has
    none of them, neither as they are nor as the model replaces them, alone or together. All of them
    are unknown anyway.
    """
    longest = max(map(len, model_rules), default=1)

    def apply_model(text):
        done, place = [], 0
        while place < len(text):
            for end in range(min(len(text), place + longest), place, -1):
                if text[place:end] in model_rules:
                    done.append(model_rules[text[place:end]])
                    break
            else:
                end = place + 1
                done.append(text[place])
            place = end
        return "".join(done)

    changed = characters.find_changed()
    composed = {chr(code): apply_model(characters[code]) for code in changed}
    sequences = {}
    for rule, product in model_rules.items():
        # No text has these characters once ALBERT's rules have been applied.
        if any(characters[ord(c)] != c for c in rule):
            continue
        if len(rule) == 1:
            composed[rule] = product
        elif not alphabet.isdisjoint(rule + product + "".join(map(apply_model, rule))):
            sequences[rule] = product
    parts = {rule[a:b] for rule in sequences for a, b in itertools.combinations(range(9), 2)}
    sources = {}
    for code in changed:
        if characters[code] in parts:
            sources.setdefault(characters[code], [chr(code)]).append(chr(code))
    for rule, product in sequences.items():
        for source in _find_sources(rule, sources):
            composed[source] = product
    composed.update({marks: apply_model(mark) for marks, mark in QUOTES.items()})
    return composed


def _find_sources(text, sources):
    """Yields the texts that ALBERT's rules make `text` of."""
    if not text:
        yield ""
    for end in range(1, len(text) + 1):
        own = [text[0]] if end == 1 else []
        for first in {*own, *sources.get(text[:end], ())}:
            for rest in _find_sources(text[end:], sources):
                yield first + rest


@functools.cache
def make_final_sigma(strip_accents):
    """The rule for capital sigmas, which is applied before the other rules.

    Characters such as apostrophes and combining marks are passed over. Characters that become a
    capital sigma by decomposition, such as mathematical ones, are no final sigmas here.
    """
    tables = _classify(AlbertCharacters(True, strip_accents))
    return FinalSigma(functools.partial(_write_patterns, tables))


def _write_patterns(tables, write_class):
    begins, passed, ends = map(write_class, tables)
    # Two equal ones of these make a quotation mark, which is not passed over.
    single = "'?(?:`')*`?"
    passed = f"{single}(?:[{passed}]{single})*"
    return f"{passed}[{begins}]", passed, f"[{ends}]"


def _classify(characters):
    """Tables of the characters that begin with a letter, are passed over, and end with a letter."""
    passed = membership(unicode14.CASE_IGNORABLE)
    letters = membership(unicode14.CASED) & ~passed
    begins, between, ends = letters.copy(), passed.copy(), letters.copy()
    for code in characters.find_changed():
        text = [ord(c) for c in characters.decompose(code)]
        kept = [c for c in text if not passed[c]]
        begins[code] = bool(kept) and letters[kept[0]]
        ends[code] = bool(kept) and letters[kept[-1]]
        between[code] = not kept
    between[[ord("'"), ord("`")]] = False
    return _list_ranges(begins), _list_ranges(between), _list_ranges(ends)


def _list_ranges(flags):
    """bool (0x110000,) -> the table of ranges that `membership` reads."""
    steps = np.flatnonzero(np.diff(np.pad(flags, 1).astype("int8")))
    return " ".join(f"{a:x}-{b - 1:x}" for a, b in steps.reshape(-1, 2).tolist())
