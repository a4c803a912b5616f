"""Unicode's canonical composition (NFC) of text, in the version of the Rust library.

Only two kinds of parts of a text change: characters that join the character before them, together
with it, and single characters that have a replacement. The tables are frozen as the Rust library
`tokenizers` 0.23 has them, and so transformers. A character in no table stays, even if a later
version of Unicode composes it. Within a part all characters are old, and the stability policy of
Unicode says that the composition of old characters never changes. So Python or ICU may compose a
part, whatever their version of Unicode.
"""

import functools
import re
import unicodedata

from keras_bert_suite.tokenizers.character_tables import read_tables
from keras_bert_suite.tokenizers.unicode_rules import python_class

#: Leading characters, characters that join the character before them, and replaced characters.
LEADING, JOINING, REPLACED = read_tables("byte_pair/canonical_composition.txt")


@functools.cache
def changing_pattern():
    """The compiled expression of the parts of a text that composition may change."""
    leading, joining, replaced = map(python_class, (LEADING, JOINING, REPLACED))
    return re.compile(f"[{leading}]?[{joining}]+|[{replaced}]")


def compose(text):
    """str -> str, its canonical composition."""
    if text.isascii():
        return text
    return changing_pattern().sub(lambda match: unicodedata.normalize("NFC", match[0]), text)


def compose_with_spans(text):
    """str -> (its composition; for each character of it the first and the last + 1 of `text`).

    All characters of a part that has changed come from the whole part.
    """
    composed, spans, place = [], [], 0
    for match in changing_pattern().finditer(text):
        new = unicodedata.normalize("NFC", match[0])
        if new != match[0]:
            start, end = match.span()
            composed += [text[place:start], new]
            spans += [(i, i + 1) for i in range(place, start)]
            spans += [(start, end)] * len(new)
            place = end
    composed.append(text[place:])
    spans += [(i, i + 1) for i in range(place, len(text))]
    return "".join(composed), spans
