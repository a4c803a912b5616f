"""Merges of byte-pair encoding in a TensorFlow graph, in all words of a batch at once."""

import numpy as np

from keras_bert_suite.tokenizers.byte_pair.byte_pair_vocabulary import decode_bytes

#: The rank of a merge that there is not.
NEVER = np.iinfo("int64").max


class GraphMerges:
    """Joins the bytes of words to tokens, step by step.

    Words are cut into parts that no merge can join. Each step makes, in each part, the merge that
    comes first in the list, and all merges that no other merge can prevent (`_find_certain`).
    """

    def __init__(self, vocabulary):
        import tensorflow as tf

        self._num_pieces = len(vocabulary.tokens)
        keys, ranks, products = _sort_merges(vocabulary)
        self._num_merges = len(keys)
        self._merges_in_order = _are_in_order(vocabulary)
        with tf.init_scope():
            self._keys, self._ranks, self._products = map(tf.constant, (keys, ranks, products))
            self._joins = tf.constant(_find_joins(vocabulary))
            self._left_joins, self._right_joins = map(tf.constant, _find_token_joins(vocabulary))

    def merge(self, ids, byte, words):
        """Bytes (N,), with the token and the word of each, to tokens.

        The result is ids, int32 (M,), and the indices of their first and last bytes, int64 (M,).
        """
        import tensorflow as tf

        count = tf.size(ids, tf.int64)
        # The token that begins at each byte; -1 for a byte within a token.
        pieces = ids
        if self._num_merges:
            join = tf.gather(self._joins, 256 * byte[:-1] + byte[1:])
            join = tf.where(words[1:] == words[:-1], join, NEVER)
            join = tf.pad(join, [[1, 0]], constant_values=NEVER)[:count]
            part = tf.cumsum(tf.cast(join == NEVER, tf.int64)) - 1
            pieces, *_ = tf.while_loop(
                lambda pieces, first, part, join: tf.size(first) > 1,
                self._merge_once,
                (pieces, tf.range(count), part, join),
                (tf.TensorShape([None]),) * 4,
            )
        first = tf.where(pieces >= 0)[:, 0]
        last = tf.concat([first[1:], tf.fill(tf.minimum(tf.shape(first), 1), count)], axis=0) - 1
        return tf.gather(pieces, first), first, last

    def _merge_once(self, pieces, first, part, join):
        """Makes the first merge of each part, and all that are certain.

        Most words are done after a few steps, and a long word takes many. So a step has only the
        tokens of parts that are not done: `first` (K,) has their first bytes, `part` (K,) their
        parts, and `join` (K,) the lowest rank of merges that join the bytes before and after the
        place where the token begins. `pieces` (N,) has the token that begins at each byte.
        """
        import tensorflow as tf

        ids = tf.gather(pieces, first)
        key = tf.cast(ids[:-1], tf.int64) * self._num_pieces + tf.cast(ids[1:], tf.int64)
        at = tf.minimum(tf.searchsorted(self._keys, key), self._num_merges - 1)
        found = (tf.gather(self._keys, at) == key) & (part[1:] == part[:-1])
        rank = tf.gather(self._ranks, at)
        if not self._merges_in_order:
            # Merges are made one at a time: a merge may make a pair whose rank is lower than its
            # own.
            rank = rank * tf.size(pieces, tf.int64) + first[:-1]
        rank = tf.where(found, rank, NEVER)
        lowest = tf.math.segment_min(tf.pad(rank, [[0, 1]], constant_values=NEVER), part)
        lowest = tf.gather(lowest, part)
        chosen = found & (rank == lowest[:-1])
        # The pairs in "aaa" overlap, so every second pair of overlapping pairs is taken.
        place = tf.range(tf.size(rank, tf.int64))
        begins = chosen & ~tf.pad(chosen, [[1, 0]])[:-1]
        begin = tf.concat([[0], tf.boolean_mask(place, begins)], axis=0)
        begin = tf.gather(begin, tf.cumsum(tf.cast(begins, tf.int64)))
        chosen &= (place - begin) % 2 == 0
        if self._merges_in_order:
            chosen |= self._find_certain(ids, rank, join[1:])

        merged = tf.boolean_mask(tf.gather(self._products, at), chosen)
        left, right = (tf.boolean_mask(x, chosen) for x in (first[:-1], first[1:]))
        pieces = tf.tensor_scatter_nd_update(
            pieces,
            tf.concat([left, right], axis=0)[:, None],
            tf.concat([merged, tf.fill(tf.shape(merged), -1)], axis=0),
        )
        kept = tf.pad(~chosen, [[1, 0]], constant_values=True) & (lowest < NEVER)
        return pieces, *(tf.boolean_mask(values, kept) for values in (first, part, join))

    def _find_certain(self, ids, rank, join):
        """bool (K - 1,), whether each pair of neighbours is certain to be merged.

        If the list of merges is in order, merges are made by ascending rank. So a pair is merged if
        both of its tokens are still there at its rank. A token is there if no merge of a lower or
        the same rank can join it with its other neighbour. This neighbour may have grown by then:
        it ends with the token that is to the left now, or begins with the token that is to the
        right.
        """
        import tensorflow as tf

        left, right = tf.gather(self._left_joins, ids[:-1]), tf.gather(self._right_joins, ids[1:])
        join = tf.maximum(join, tf.maximum(left, right))
        before = tf.pad(join[:-1], [[1, 0]], constant_values=NEVER)
        after = tf.pad(join[1:], [[0, 1]], constant_values=NEVER)
        return rank < tf.minimum(before, after)


def _sort_merges(vocabulary):
    """Keys of the merges, left * V + right, ascending; their ranks and products."""
    ids, size = vocabulary.ids, len(vocabulary.tokens)
    ranks = {merge: rank for rank, merge in enumerate(vocabulary.merges)}  # of equals the last
    keys = np.array([ids[left] * size + ids[right] for left, right in ranks], "int64")
    products = np.array([ids[left + right] for left, right in ranks], "int32")
    order = np.argsort(keys)
    return keys[order], np.array(list(ranks.values()), "int64")[order], products[order]


def _are_in_order(vocabulary):
    """Whether each merge comes after the merges that make its parts, as in a trained list."""
    made_at = {}
    for rank, merge in enumerate(vocabulary.merges):
        made_at["".join(merge)] = rank
    return all(
        made_at.get(part, -1) < rank
        for rank, merge in enumerate(vocabulary.merges)
        for part in merge
    )


def _find_joins(vocabulary):
    """int64 (65536,), at 256 * first + second, the lowest rank of merges that join these bytes."""
    joins = np.full(65536, NEVER)
    for rank, (left, right) in enumerate(vocabulary.merges):
        place = 256 * decode_bytes(left[-1])[-1] + decode_bytes(right[0])[0]
        joins[place] = min(joins[place], rank)
    return joins


def _find_token_joins(vocabulary):
    """Two int64 (V,): the lowest rank of merges whose left part ends with each token, and of merges
    whose right part begins with it."""
    ends, begins = {}, {}
    for rank, (left, right) in enumerate(vocabulary.merges):
        for length in range(1, len(left) + 1):
            ends.setdefault(left[-length:], rank)
        for length in range(1, len(right) + 1):
            begins.setdefault(right[:length], rank)
    return tuple(
        np.array([ranks.get(token, NEVER) for token in vocabulary.tokens], "int64")
        for ranks in (ends, begins)
    )
