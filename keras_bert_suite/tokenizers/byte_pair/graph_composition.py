"""Canonical composition of characters in a TensorFlow graph."""

import numpy as np

from keras_bert_suite.tokenizers.byte_pair.canonical_composition import JOINING, LEADING, REPLACED
from keras_bert_suite.tokenizers.unicode_rules import membership

_PLAIN, _LEADING, _JOINING, _REPLACED = range(4)


class GraphComposition:
    """Composes the characters of a batch as `canonical_composition.compose` does.

    Most texts have nothing to compose. So only the parts that may change become strings, which
    TensorFlow Text composes.
    """

    def __init__(self):
        import tensorflow as tf

        kinds = np.zeros(0x110000, "int8")
        # A character that is replaced may be a leading one, too.
        for table, kind in ((LEADING, _LEADING), (REPLACED, _REPLACED), (JOINING, _JOINING)):
            kinds[membership(table)] = kind
        with tf.init_scope():
            self._kinds = tf.constant(kinds)

    def compose(self, characters, starts, ends, rows):
        """Composes the characters of all rows.

        They have code points, where each begins and ends, and its row, all (N,). The result is the
        same four for the composed characters. The characters of a part that has changed come from
        the whole part.
        """
        import tensorflow as tf
        import tensorflow_text as tf_text

        kinds = tf.gather(self._kinds, characters)
        joins = kinds == _JOINING
        same_row = tf.concat([[False], rows[1:] == rows[:-1]], axis=0)[: tf.size(rows)]
        before = tf.concat([[_PLAIN], tf.cast(kinds, tf.int32)[:-1]], axis=0)[: tf.size(rows)]
        follows = joins & same_row & (before != _PLAIN)
        part = tf.cumsum(tf.cast(~follows, tf.int64)) - 1
        may_change = tf.math.segment_max(tf.cast(joins | (kinds == _REPLACED), tf.int32), part)
        chosen = tf.gather(may_change, part) > 0

        places = tf.boolean_mask(tf.range(tf.size(rows, tf.int64)), chosen)
        begins = tf.boolean_mask(~follows, chosen)
        numbers = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        count = tf.reduce_sum(tf.cast(begins, tf.int64))
        old = tf.RaggedTensor.from_value_rowids(
            tf.gather(characters, places), numbers, count, validate=False
        )
        texts = tf.strings.unicode_encode(old, "UTF-8")
        composed = tf_text.normalize_utf8(texts, "NFC")
        changed = composed != texts
        new = tf.strings.unicode_decode(tf.boolean_mask(composed, changed), "UTF-8")

        first = tf.boolean_mask(tf.boolean_mask(places, begins), changed)
        lengths = tf.boolean_mask(old.row_lengths(), changed)
        owner = new.value_rowids()
        first_of_new = tf.gather(first, owner)
        last_of_new = first_of_new + tf.gather(lengths, owner) - 1
        lost = tf.boolean_mask(places, tf.gather(changed, numbers))
        is_kept = tf.tensor_scatter_nd_update(
            tf.ones_like(rows, tf.bool), lost[:, None], tf.zeros_like(lost, tf.bool)
        )
        kept = tf.where(is_kept)[:, 0]
        order = tf.argsort(tf.concat([kept, first_of_new], axis=0), stable=True)
        return tuple(
            tf.gather(tf.concat([tf.gather(values, kept), of_new], axis=0), order)
            for values, of_new in (
                (characters, new.values),
                (starts, tf.gather(starts, first_of_new)),
                (ends, tf.gather(ends, last_of_new)),
                (rows, tf.gather(rows, first_of_new)),
            )
        )
