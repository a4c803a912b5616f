"""The TensorFlow engine: the two ops of tensorflow_text's FastBertTokenizer, made exact.

The normalizer op executes our own model, see `normalizer_model`. A model cannot express two rules:
the final sigma, and the limit of a word's length in characters instead of bytes. Other ops apply
them to the batches that need them. The WordPiece op follows ICU, not Unicode 14.
"""

import itertools
import struct

import numpy as np

from keras_bert_suite.tokenizers import unicode14
from keras_bert_suite.tokenizers.engines import GraphEngine, list_ends
from keras_bert_suite.tokenizers.unicode_rules import (
    CJK,
    FINAL_SIGMA,
    SPACE,
    CharacterMap,
    membership,
)
from keras_bert_suite.tokenizers.word_piece.normalizer_model import build_normalizer_model
from keras_bert_suite.tokenizers.word_piece.vocabulary import CONTINUATION_PREFIX
from keras_bert_suite.tokenizers.word_piece.word_splitting import MAX_CHARACTERS_PER_WORD

MAX_BYTES_PER_CHARACTER = 4


class FastGraphTokenizer(GraphEngine):
    """String tensors to ids inside a TensorFlow graph. It takes the arguments of `CachedWordPiece`.

    One deviation from Google's rules is known. Visible combining marks (category Mc, such as the
    stems and dots of musical notes) stay in the order that the text has them in, also where it is
    not the canonical order. This changes ids only if the vocabulary holds two such marks. The
    public BERT vocabularies hold none.
    """

    spaced = CJK

    def __init__(
        self,
        vocabulary,
        unknown_token,
        lowercase,
        strip_accents,
        max_word_length=MAX_CHARACTERS_PER_WORD,
    ):
        import tensorflow as tf
        import tensorflow_text

        pieces, unassigned, replacements = _encode_unassigned(vocabulary.tokens)
        if lowercase:
            replacements[ord("Σ")] = "Σ"  # Left to `FINAL_SIGMA`.
        normalizer_model = build_normalizer_model(
            lowercase, strip_accents, unassigned, replacements
        )
        word_piece_model = tensorflow_text.build_fast_wordpiece_model(
            _hide_spaces(pieces),
            max_word_length,
            CONTINUATION_PREFIX,
            unknown_token,
            False,  # no_pretokenization
            False,  # support_detokenization
        )
        self._lowercase = lowercase
        self._characters = CharacterMap(lowercase, strip_accents)
        self._max_word_length = max_word_length
        self._unknown_id = vocabulary.ids[unknown_token]
        self._length_limit_at = _find_length_limit(word_piece_model)
        # Made outside of any graph that is being traced, so that other graphs may use them too.
        with tf.init_scope():
            self._normalizer = tensorflow_text.FastBertNormalizer(
                model_buffer=_byte_tensor(normalizer_model)
            )
            self._word_piece_model = _byte_tensor(word_piece_model)
            self._continues_word = tf.constant(
                [token.startswith(CONTINUATION_PREFIX) for token in vocabulary.tokens]
            )

    def _tokenize_rows(self, texts):
        normalized = self._normalizer.normalize(texts)
        return self._split_words(self._lower(normalized))[0]

    def _tokenize_rows_with_offsets(self, texts):
        import tensorflow as tf

        normalized, origins = self._normalizer.normalize_with_offsets(texts)
        ids, starts, ends = self._split_words(self._lower(normalized))
        origins = tf.cast(origins, tf.int64)
        row = tf.gather(origins.row_starts(), ids.value_rowids())
        first_byte = row + tf.cast(starts.flat_values, tf.int64)
        last_byte = row + tf.cast(ends.flat_values, tf.int64) - 1
        start = tf.gather(origins.values, first_byte)
        end = tf.gather(list_ends(origins), last_byte)
        word_start = tf.logical_not(tf.gather(self._continues_word, ids.flat_values))
        return (
            ids,
            ids.with_flat_values(start),
            ids.with_flat_values(end),
            ids.with_flat_values(word_start),
        )

    def normalize_with_places(self, texts):
        import tensorflow as tf

        normalized, origins = self._normalizer.normalize_with_offsets(texts)
        origins = tf.cast(origins, tf.int64)
        ends = origins.with_values(list_ends(origins))
        # The library lowers a sigma wherever it is.
        return tf.strings.regex_replace(normalized, "Σ", "σ"), origins, ends

    def normalize_token(self, content):
        """As `normalize_with_places`, but for characters that no token of a public model has."""
        return content.translate(self._characters).replace("Σ", "σ")

    def _lower(self, normalized):
        # The normalizer's model lowers all other characters.
        return FINAL_SIGMA.apply_in_graph(normalized) if self._lowercase else normalized

    def _split_words(self, texts):
        """Normalized rows -> ragged (ids, starts, ends), offsets in bytes of the normalized row."""
        import tensorflow as tf

        ids, starts, ends = _word_piece_op(self._word_piece_model, texts)
        # The op takes words of more than 200 bytes for unknown. Google's limit is 200 characters.
        is_long = ends.flat_values - starts.flat_values > self._max_word_length

        def split_long_words():
            pieces = _word_piece_op(self._unlimited_word_piece_model(), texts)
            mask = ids.with_flat_values(is_long)
            long_words = (tf.ragged.boolean_mask(offsets, mask) for offsets in (starts, ends))
            unknown = _find_unknown_words(texts, *long_words, self._max_word_length)
            return _merge_unknown_words(texts, pieces, unknown, self._unknown_id)

        return tf.cond(tf.reduce_any(is_long), split_long_words, lambda: (ids, starts, ends))

    def _unlimited_word_piece_model(self):
        """The model with a limit that no word of as many characters as are allowed reaches.

        It is made in the graph, so that a SavedModel carries one model and not two.
        """
        import tensorflow as tf

        limit = struct.pack("<i", MAX_BYTES_PER_CHARACTER * self._max_word_length)
        model, at = self._word_piece_model, self._length_limit_at
        return tf.concat([model[:at], _byte_tensor(limit), model[at + len(limit) :]], axis=0)


def _word_piece_op(model, texts):
    import tensorflow as tf
    import tensorflow_text

    op = tensorflow_text.FastWordpieceTokenizer(token_out_type=tf.int32, model_buffer=model)
    return op.tokenize_with_offsets(texts)


def _byte_tensor(content):
    import tensorflow as tf

    return tf.constant(np.frombuffer(content, dtype=np.uint8))


def _encode_unassigned(tokens):
    """Hides the characters that Unicode 14 left unassigned from ICU, which knows later versions.

    BERT treats such characters as letters, but ICU treats some of them as punctuation. A character
    that no token contains becomes one private-use character, the same for all such characters. No
    token contains the private-use character either. Each character that some token contains becomes
    a different private-use character, in the texts and in the tokens.

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


def _hide_spaces(tokens):
    """Replaces empty tokens, and tokens that have a space in them.

    Such a token matches no word, but the op would match it with two words.
    """
    space = membership(SPACE)
    return [
        token if token and not any(space[ord(c)] for c in token) else f"[unmatchable {index}]"
        for index, token in enumerate(tokens)
    ]


def _find_length_limit(model):
    """The position of the fifth field in the flatbuffer FastWordpieceTokenizerConfig.

    The field is an int32, the number of bytes above which a word is unknown.
    """
    (table,) = struct.unpack_from("<I", model, 0)
    (to_field_table,) = struct.unpack_from("<i", model, table)
    (field,) = struct.unpack_from("<H", model, table - to_field_table + 4 + 4 * 2)
    return table + field


def _find_unknown_words(texts, starts, ends, max_characters):
    """Finds the words that have more than `max_characters` characters.

    `starts` and `ends` of the words are ragged (B, None), in bytes of their row. The result is
    `(starts, ends)` of these words, int64, in bytes of the joined rows.
    """
    import tensorflow as tf

    content = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
    begins_character = tf.cast(tf.bitwise.bitwise_and(content, 0xC0) != 0x80, tf.int64)
    characters_before = tf.concat([[0], tf.cumsum(begins_character)], axis=0)
    start, end = _place_in_batch(texts, starts), _place_in_batch(texts, ends)
    length = tf.gather(characters_before, end) - tf.gather(characters_before, start)
    too_long = length > max_characters
    return tf.boolean_mask(start, too_long), tf.boolean_mask(end, too_long)


def _merge_unknown_words(texts, pieces, unknown_words, unknown_id):
    """Makes all tokens of each unknown word one unknown token.

    `pieces` and the result are `(ids, starts, ends)`, ragged (B, None), in bytes of their row.
    `unknown_words` is the result of `_find_unknown_words`.
    """
    import tensorflow as tf

    ids, starts, ends = pieces
    # A word before all others, so that the search always finds a word.
    word_start, word_end = (tf.concat([[-1], places], axis=0) for places in unknown_words)
    start, end = _place_in_batch(texts, starts), _place_in_batch(texts, ends)
    word = tf.searchsorted(word_start, start, side="right") - 1
    is_unknown = start < tf.gather(word_end, word)
    is_first = start == tf.gather(word_start, word)
    is_kept = tf.logical_or(tf.logical_not(is_unknown), is_first)
    extension = tf.where(is_unknown, tf.gather(word_end, word) - end, 0)
    kept_before = tf.concat([[0], tf.cumsum(tf.cast(is_kept, tf.int64))], axis=0)
    row_splits = tf.gather(kept_before, ids.row_splits)
    return tuple(
        tf.RaggedTensor.from_row_splits(tf.boolean_mask(v, is_kept), row_splits, validate=False)
        for v in (
            tf.where(is_unknown, unknown_id, ids.flat_values),
            starts.flat_values,
            ends.flat_values + tf.cast(extension, ends.dtype),
        )
    )


def _place_in_batch(texts, offsets):
    """Offsets in bytes of each row, ragged (B, None), to offsets in the joined rows, int64."""
    import tensorflow as tf

    row_starts = tf.cumsum(tf.cast(tf.strings.length(texts), tf.int64), exclusive=True)
    return tf.gather(row_starts, offsets.value_rowids()) + tf.cast(offsets.flat_values, tf.int64)
