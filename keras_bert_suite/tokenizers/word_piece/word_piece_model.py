"""Prepares a vocabulary for tensorflow_text's WordPiece op, which follows ICU, not Unicode 14."""

import itertools
import struct

from keras_bert_suite.tokenizers import unicode14
from keras_bert_suite.tokenizers.unicode_rules import CJK, SPACE, membership


def encode_unassigned(tokens):
    """Hides the characters that Unicode 14 left unassigned from ICU, which knows later versions.

    BERT treats such characters as letters, but ICU treats some of them as punctuation. A character
    that no token contains becomes one private-use character, the same for all such characters. No
    token contains the private-use character either. A character that some token contains becomes a
    private-use character of its own, in the texts and in the tokens.

    The result is the tokens for the op; the private-use character of the characters that no token
    holds; and dict of code point -> str, the other changes.
    """
    letters = set().union(*tokens)
    private = (
        chr(code)
        for code in itertools.chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))
        if chr(code) not in letters
    )
    unassigned = next(private)
    hidden = membership(unicode14.UNASSIGNED) & ~membership(CJK)
    substitutes = {ord(letter): next(private) for letter in letters if hidden[ord(letter)]}
    replacements = {ord(substitute): unassigned for substitute in substitutes.values()}
    replacements.update(substitutes)
    pieces = [token.translate(substitutes) for token in tokens]
    return pieces, unassigned, replacements


def hide_spaces(tokens):
    """Replaces empty tokens, and tokens that have a space in them.

    Such a token matches no word, but the op would match it with two words.
    """
    space = membership(SPACE)
    return [
        token if token and not any(space[ord(c)] for c in token) else f"[unmatchable {index}]"
        for index, token in enumerate(tokens)
    ]


def find_length_limit(model):
    """The position of the fifth field in the flatbuffer FastWordpieceTokenizerConfig.

    The field is an int32, the number of bytes above which a word is unknown.
    """
    (table,) = struct.unpack_from("<I", model, 0)
    (to_field_table,) = struct.unpack_from("<i", model, table)
    (field,) = struct.unpack_from("<H", model, table - to_field_table + 4 + 4 * 2)
    return table + field
