"""The TensorFlow engine: the two ops of tensorflow_text's FastBertTokenizer, made exact.

The normalizer op executes our own model, see `normalizer_model`. A model cannot express two rules:
the final sigma, and the limit of a word's length in characters instead of bytes. Other ops apply
them to the batches that need them.
"""

import struct

import numpy as np

from keras_bert_suite.tokenizers.engines import GraphEngine, list_ends
from keras_bert_suite.tokenizers.unicode_rules import CJK, FINAL_SIGMA, CharacterMap
from keras_bert_suite.tokenizers.word_piece.graph_corrections import (
    find_unknown_words,
    merge_unknown_words,
)
from keras_bert_suite.tokenizers.word_piece.normalizer_model import build_normalizer_model
from keras_bert_suite.tokenizers.word_piece.vocabulary import CONTINUATION_PREFIX
from keras_bert_suite.tokenizers.word_piece.word_piece_model import (
    encode_unassigned,
    find_length_limit,
    hide_spaces,
)
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

        pieces, unassigned, replacements = encode_unassigned(vocabulary.tokens)
        if lowercase:
            replacements[ord("Σ")] = "Σ"  # Left to `FINAL_SIGMA`.
        normalizer_model = build_normalizer_model(
            lowercase, strip_accents, unassigned, replacements
        )
        word_piece_model = tensorflow_text.build_fast_wordpiece_model(
            hide_spaces(pieces),
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
        self._length_limit_at = find_length_limit(word_piece_model)
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
            unknown = find_unknown_words(texts, *long_words, self._max_word_length)
            return merge_unknown_words(texts, pieces, unknown, self._unknown_id)

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
