"""The TensorFlow engine: the op of tensorflow_text's FastSentencepieceTokenizer, made exact.

tensorflow_text has two ops. The older one, SentencepieceTokenizer, compares sums of scores in
another precision than the `sentencepiece` library. So it splits words like "aaaaaaaaaaaaaaa" in
another way where several ways have equal scores. The fast op adds and compares as the library does,
and has no state. But it counts the bytes of an unknown character one by one, and knows no positions
in the text. So unknown characters become pieces of one byte here, which are joined again, and the
older op, with a model of single bytes, tells from where each normalized byte came.
"""

from keras_bert_suite.tokenizers.engines import GraphEngine, drop_invalid, list_ends, place_in
from keras_bert_suite.tokenizers.sentence_piece.byte_models import (
    FIRST_BYTE,
    HIDDEN,
    find_hidden,
    keeps_space_symbol,
    make_byte_model,
    make_byte_pieces,
)
from keras_bert_suite.tokenizers.sentence_piece.model_of_engines import find_edges
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import SPACE


class GraphSentencePiece(GraphEngine):
    """String tensors to ids inside a TensorFlow graph, by an `EngineModel`."""

    def __init__(self, model):
        import tensorflow as tf
        import tensorflow_text
        from sentencepiece import SentencePieceProcessor

        # The op is made anew in each graph: who saves a graph would have to track its state, and
        # TensorFlow may throw the state of an eager op away.
        byte_model = make_byte_model(model.content)
        self._make_byte_origins = lambda: tensorflow_text.SentencepieceTokenizer(byte_model)
        self._processor = SentencePieceProcessor(model_proto=model.content)
        self._case_rule = model.case_rule
        self._num_pieces = len(model.pieces)
        self._unknown = model.unknown
        self._has_splits = bool(model.splits)
        self._hidden = find_hidden(model.content)
        self._keeps_space_symbol = keeps_space_symbol(model.content)
        sizes = [len(piece.encode()) for piece in model.pieces]
        spaces = [len(piece.encode()) - len(piece.lstrip(SPACE).encode()) for piece in model.pieces]
        with tf.init_scope():
            self._pieces = tensorflow_text.FastSentencepieceTokenizer(
                make_byte_pieces(model.content)
            )
            self._piece_ids = tf.constant(model.piece_ids)
            self._bytes = tf.constant([bytes([byte]) for byte in range(256)])
            self._sizes, self._spaces = tf.constant(sizes, tf.int64), tf.constant(spaces, tf.int64)
            self._begins, self._ends = map(tf.constant, find_edges(model.pieces, model.unknown))
            if self._has_splits:
                self._parts, self._part_sizes = _list_parts(model)

    def _tokenize_rows(self, texts):
        import tensorflow as tf

        numbers, _ = self._segment(self._prepare(drop_invalid(texts)))
        return numbers.with_values(tf.gather(self._piece_ids, numbers.values))

    def normalize_with_places(self, texts):
        """As the model does: spaces are joined, and one is before each text."""
        import tensorflow as tf

        ids, starts, ends = self._make_byte_origins().tokenize_with_offsets(self._prepare(texts))
        characters = tf.gather(self._bytes, ids.values - FIRST_BYTE)
        normalized = tf.strings.reduce_join(ids.with_values(characters), axis=-1)
        starts, ends = (x.with_values(tf.cast(x.values, tf.int64)) for x in (starts, ends))
        return normalized, starts, ends

    def normalize_token(self, content):
        return self._processor.normalize(content).removeprefix(SPACE)

    def _prepare(self, texts):
        return texts if self._case_rule is None else self._case_rule.apply_in_graph(texts)

    def _segment(self, texts):
        """Ragged (B, None): the numbers of pieces, int32, and their lengths in bytes, int64."""
        import tensorflow as tf

        if self._keeps_space_symbol:
            texts = tf.strings.regex_replace(texts, f"[ {SPACE}]+$", "")
        if self._hidden:
            texts = tf.strings.regex_replace(texts, self._hidden, HIDDEN)
        numbers = self._pieces.tokenize(texts).with_row_splits_dtype(tf.int64)
        values, splits = numbers.values, numbers.row_splits
        is_byte = values >= self._num_pieces
        # Unknown characters that are neighbours are one unknown piece.
        goes_on = is_byte & tf.concat([[False], is_byte[:-1]], axis=0)[: tf.size(values)]
        begins_row = tf.scatter_nd(
            splits[:-1, None], tf.ones_like(splits[:-1]), [tf.size(values, tf.int64) + 1]
        )
        is_kept = ~goes_on | (begins_row[:-1] > 0)
        kept_before = tf.concat([[0], tf.cumsum(tf.cast(is_kept, tf.int64))], axis=0)
        splits = tf.gather(kept_before, splits)
        own_size = tf.gather(self._sizes, tf.where(is_byte, 0, values))
        size = tf.where(is_byte, tf.ones_like(own_size), own_size)
        sizes = tf.math.segment_sum(size, kept_before[1:] - 1)
        values = tf.boolean_mask(tf.where(is_byte, self._unknown, values), is_kept)
        if self._has_splits:
            values, sizes, splits = self._split(values, sizes, splits)
        return tuple(
            tf.RaggedTensor.from_row_splits(v, splits, validate=False) for v in (values, sizes)
        )

    def _split(self, values, sizes, splits):
        """Replaces pieces by the pieces that the model's `splits` name."""
        import tensorflow as tf

        parts, part_sizes = (tf.gather(t, values) for t in (self._parts, self._part_sizes))
        whole = tf.gather(sizes, parts.value_rowids())
        is_whole = tf.gather(parts.row_lengths(), parts.value_rowids()) == 1
        sizes = tf.where(is_whole, whole, part_sizes.values)
        return parts.values, sizes, tf.gather(parts.row_splits, splits)

    def _tokenize_rows_with_offsets(self, texts):
        import tensorflow as tf

        clean = drop_invalid(texts)
        prepared = self._prepare(clean)
        numbers, sizes = self._segment(prepared)
        _, byte_starts, byte_ends = self._make_byte_origins().tokenize_with_offsets(prepared)
        # Where each normalized byte came from, and where the last one ends.
        origins = tf.cast(tf.concat([byte_starts, byte_ends[:, -1:]], axis=1), tf.int64)
        origin, ends_at = origins.values, list_ends(origins)

        values, row = numbers.values, numbers.value_rowids()
        before = tf.concat([[0], tf.cumsum(sizes.values)], axis=0)
        shift = origins.row_starts() - tf.gather(before, numbers.row_starts())
        first = before[:-1] + tf.gather(shift, row)
        spaces = tf.gather(self._spaces, values)
        start = tf.gather(origin, first + spaces)
        end = tf.gather(ends_at, first + sizes.values - 1)
        end = tf.where(spaces == sizes.values, start, end)
        after_end = tf.concat([[True], tf.gather(self._ends, values)[:-1]], axis=0)
        is_first = tf.concat([[True], row[1:] != row[:-1]], axis=0)
        begins = tf.gather(self._begins, values)
        begins |= (after_end | is_first)[: tf.size(values)]
        ids, starts, ends, begins = (
            numbers.with_values(v) for v in (tf.gather(self._piece_ids, values), start, end, begins)
        )
        starts, ends = tf.cond(
            tf.reduce_any(clean != texts),
            lambda: (place_in(texts, clean, starts), place_in(texts, clean, ends)),
            lambda: (starts, ends),
        )
        return ids, starts, ends, begins


def _list_parts(model):
    """Ragged (N, None): the pieces that replace each piece, int32; their sizes in bytes, int64."""
    import tensorflow as tf

    numbers, sizes = [], []
    for number, piece in enumerate(model.pieces):
        parts, rest = model.splits.get(number, ((number, len(piece)),)), piece
        numbers.append([part for part, _ in parts])
        sizes.append([])
        for _, length in parts:
            sizes[-1].append(len(rest[:length].encode()))
            rest = rest[length:]
    return tf.ragged.constant(numbers, tf.int32), tf.ragged.constant(sizes, tf.int64)
