"""Compiles a character map into the model that tensorflow_text's FastBertNormalizer executes.

The op looks each character of a UTF-8 string up in a trie, and writes the replacement that it finds
there. The model of tensorflow_text follows ICU's current Unicode version, folds case instead of
lowering it, and replaces controls by spaces. Our model has the replacements of `CharacterMap`, is
as fast, and deletes bytes that are not UTF-8.
"""

import functools
import struct
import unicodedata

import numpy as np

from keras_bert_suite.tokenizers import unicode14
from keras_bert_suite.tokenizers.unicode_rules import (
    CJK,
    DELETED,
    SPACE,
    CharacterMap,
    lowercase_map,
    membership,
)
from keras_bert_suite.tokenizers.word_piece.double_array import NodePool, lay_out

# A trie value: the flag "changed", the replacement's place in the pool, its length in bytes.
_CHANGED = 1 << 30
_LENGTH_BITS = 6
_DELETE = _CHANGED

HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)


def build_normalizer_model(lowercase, strip_accents, unassigned, replacements):
    """The flatbuffer `FastBertNormalizerModel`, bytes.

    `unassigned` is written for every unassigned character outside the CJK ranges. `replacements`,
    dict of code point -> str, override every other rule.
    """
    return _build(lowercase, strip_accents, unassigned, tuple(replacements.items()))


@functools.lru_cache(maxsize=4)
def _build(lowercase, strip_accents, unassigned, replacements):
    """Few vocabularies have rules of their own, and half a second goes into them."""
    characters = _changed_characters(lowercase, strip_accents)
    characters.update(replacements)
    values, pool = _encode_values(characters, unassigned)
    units = lay_out(_build_byte_tree(values))
    return _write_flatbuffer(lowercase, units.astype("<u4").tobytes(), int(values[0]), pool)


def _changed_characters(lowercase, strip_accents):
    """dict of code point -> str for every character that does not stay as it is."""
    characters = CharacterMap(lowercase, strip_accents)
    candidates = membership(DELETED) | membership(SPACE)
    candidates[list(lowercase_map())] = True
    if strip_accents:
        candidates |= membership(unicode14.NONSPACING)
        candidates[HANGUL_SYLLABLES] = True
        for code in np.flatnonzero(~membership(unicode14.UNASSIGNED)).tolist():
            if unicodedata.decomposition(chr(code)):
                candidates[code] = True
    return {code: characters[code] for code in np.flatnonzero(candidates).tolist()}


def _encode_values(characters, unassigned):
    """(uint32 array of 0x110000 trie values, 0 for unchanged characters; the pool, bytes)."""
    pool = bytearray()
    places = {"": _DELETE}

    def encode(text):
        if text not in places:
            encoded = text.encode("utf-8")
            places[text] = _CHANGED | len(pool) << _LENGTH_BITS | len(encoded)
            pool.extend(encoded)
        return places[text]

    values = np.zeros(0x110000, dtype=np.uint32)
    values[membership(unicode14.UNASSIGNED) & ~membership(CJK)] = encode(unassigned)
    for code, text in characters.items():
        values[code] = 0 if text == chr(code) else encode(text)
    return values, bytes(pool)


def _build_byte_tree(values):
    """The root of the tree of UTF-8 sequences, each leading to the value of its character.

    The op steps over bytes that are not UTF-8 as Python's decoder does under errors="ignore": by
    the longest beginning of a character, or else by one byte. All such bytes are deleted.
    """
    pool = NodePool()

    def branch(nodes):
        # `nodes` has the nodes of the 64 continuation bytes, None where a byte leads to no node. A
        # character without its continuation byte is cut short, and is deleted.
        return pool.node(_DELETE, {0x80 | i: n for i, n in enumerate(nodes) if n is not None})

    # Blocks of 64 characters share all bytes but the last. Most blocks are alike.
    branches = {}
    blocks = []
    for block in values.reshape(-1, 64):
        key = block.tobytes()
        if key not in branches:
            branches[key] = branch([pool.leaf(int(value)) for value in block])
        blocks.append(branches[key])
    two_bytes = blocks[:0x20]
    # Longer sequences for characters that two bytes hold, and for surrogates, are not UTF-8.
    blocks[:0x20] = [None] * 0x20
    blocks[0xD800 >> 6 : 0xE000 >> 6] = [None] * 0x20
    # Planes of 64 blocks share all bytes but the last two.
    planes = [branch(blocks[i : i + 64]) for i in range(0, len(blocks), 64)]
    three_bytes = planes[:0x10]
    planes[:0x10] = [None] * 0x10

    root = {byte: pool.leaf(int(values[byte])) for byte in range(1, 0x80)}
    root.update({byte: pool.leaf(_DELETE) for byte in range(0x80, 0x100)})
    root.update({0xC0 | i: two_bytes[i] for i in range(2, 0x20)})
    root.update({0xE0 | i: three_bytes[i] for i in range(0x10)})
    root.update({0xF0 | i: branch(planes[i << 6 : (i + 1) << 6]) for i in range(5)})
    return pool.node(0, {byte: node for byte, node in root.items() if node is not None})


def _write_flatbuffer(lowercase, trie, value_of_zero, pool):
    """Writes the table of four fields: lower_case_nfd_strip_accents, trie_array,
    data_for_codepoint_zero (a key that the trie cannot hold) and normalized_string_pool.
    """
    table, trie_at = 16, 36
    pool_at = trie_at + 4 + len(trie)
    return b"".join(
        [
            struct.pack("<I", table),
            # Field table: its size, the table's size, where each field is.
            struct.pack("<6H", 12, 20, 7, 8, 12, 16),
            # A reference is an offset from its position.
            struct.pack("<i3x?", table - 4, lowercase),
            struct.pack("<IiI", trie_at - (table + 8), value_of_zero, pool_at - (table + 16)),
            struct.pack("<I", len(trie) // 4),
            trie,
            struct.pack("<I", len(pool)),
            pool,
        ]
    )
