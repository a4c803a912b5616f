"""The TensorFlow engine: the two ops of tensorflow_text's FastBertTokenizer, made exact.

The normalizer op executes our own model, see `normalizer_model`. A model cannot express two rules:
the final sigma, and the limit of a word's length in characters instead of bytes. Other ops apply
them to the batches that need them.
"""

import struct

import numpy as np

from keras_bert_suite.tokenizers.engines import GraphEngine
from keras_bert_suite.tokenizers.unicode_rules import FINAL_SIGMA
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
    """String tensors to ids inside a TensorFlow graph.

    One deviation from Google's rules is known. Visible combining marks (category Mc, such as the
    stems and dots of musical notes) stay in the order that the text has them in, also where it is
    not the canonical order. This changes ids only if the vocabulary holds two such marks. The
    public BERT vocabularies hold none.

    Args: as for `CachedWordPiece`.
    """

    def __init__(self, vocabulary, unknown_token, lowercase, strip_accents):
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
            MAX_CHARACTERS_PER_WORD,
            CONTINUATION_PREFIX,
            unknown_token,
            False,  # no_pretokenization
            False,  # support_detokenization
        )
        self._lowercase = lowercase
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
        # `origin` has for each byte of the normalized rows the index of the byte it came from, and
        # at the end of each row the row's length. All bytes of a changed character have the index
        # of its first byte, so a token ends at the next different index.
        origin = origins.flat_values
        row_starts = origins.row_starts()
        is_new = tf.concat([[True], origin[1:] != origin[:-1]], axis=0)[: tf.size(origin)]
        is_new = tf.tensor_scatter_nd_update(
            is_new, row_starts[:, tf.newaxis], tf.fill(tf.shape(row_starts), True)
        )
        distinct = tf.boolean_mask(origin, is_new)
        rank = tf.cumsum(tf.cast(is_new, tf.int64)) - 1
        row = tf.gather(row_starts, ids.value_rowids())
        first_byte = row + tf.cast(starts.flat_values, tf.int64)
        last_byte = row + tf.cast(ends.flat_values, tf.int64) - 1
        start = tf.gather(origin, first_byte)
        end = tf.gather(distinct, tf.gather(rank, last_byte) + 1)
        word_start = tf.logical_not(tf.gather(self._continues_word, ids.flat_values))
        return (
            ids,
            ids.with_flat_values(tf.cast(start, tf.int64)),
            ids.with_flat_values(tf.cast(end, tf.int64)),
            ids.with_flat_values(word_start),
        )

    def _lower(self, normalized):
        # The normalizer's model lowers all other characters.
        return FINAL_SIGMA.apply_in_graph(normalized) if self._lowercase else normalized

    def _split_words(self, texts):
        """Normalized rows -> ragged (ids, starts, ends), offsets in bytes of the normalized row."""
        import tensorflow as tf

        ids, starts, ends = _word_piece_op(self._word_piece_model, texts)
        # The op takes words of more than 200 bytes for unknown. Google's limit is 200 characters.
        is_long = ends.flat_values - starts.flat_values > MAX_CHARACTERS_PER_WORD

        def split_long_words():
            pieces = _word_piece_op(self._unlimited_word_piece_model(), texts)
            mask = ids.with_flat_values(is_long)
            long_words = (tf.ragged.boolean_mask(offsets, mask) for offsets in (starts, ends))
            unknown = find_unknown_words(texts, *long_words, MAX_CHARACTERS_PER_WORD)
            return merge_unknown_words(texts, pieces, unknown, self._unknown_id)

        return tf.cond(tf.reduce_any(is_long), split_long_words, lambda: (ids, starts, ends))

    def _unlimited_word_piece_model(self):
        """The model with a limit that no word of 200 characters reaches.

        It is made in the graph, so that a SavedModel carries one model and not two.
        """
        import tensorflow as tf

        limit = struct.pack("<i", MAX_BYTES_PER_CHARACTER * MAX_CHARACTERS_PER_WORD)
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
