"""Tokens that are found in a text before it is split into words, such as runs of spaces.

At each position the longest token counts.
"""

import re


def added_pattern(tokens):
    """A regular expression, for Python and for RE2, whose only group matches one of the tokens.

    Args:
        tokens: list of str, at least one.
    """
    longest_first = sorted(tokens, key=len, reverse=True)
    return f"({'|'.join(map(re.escape, longest_first))})"


def check_added_tokens(tokens, vocabulary, add_prefix_space):
    """Checks the added tokens of a tokenizer.

    Args:
        tokens: tuple of str.
        vocabulary: `BytePairVocabulary`, or None.
        add_prefix_space: bool, whether a text that begins without a space gets one.

    Raises:
        ValueError: if a token has no id, or if there are tokens and a space is added: the Rust
            library would add one after each of them.
    """
    if tokens and add_prefix_space:
        raise ValueError(
            f"A tokenizer with added_tokens adds no space before texts, got add_prefix_space=True "
            f"and {len(tokens)} tokens. Drop one of the two."
        )
    missing = [token for token in tokens if vocabulary and token not in vocabulary.ids]
    if missing or not all(isinstance(token, str) and token for token in tokens):
        raise ValueError(
            f"added_tokens must be pieces of the vocabulary, got {(missing or list(tokens))[:5]}. "
            "Use the tokenizer.json that came with the weights."
        )


class GraphAddedTokens:
    """Finds the added tokens of texts in a TensorFlow graph.

    Args:
        tokens: tuple of str, at least one.
        ids: dict of token -> id.
    """

    def __init__(self, tokens, ids):
        import tensorflow as tf

        self._pattern = added_pattern(tokens)
        with tf.init_scope():
            self._tokens = tf.constant(tokens)
            self._ids = tf.constant([ids[token] for token in tokens])

    def split(self, characters, rows, num_rows):
        """Splits the characters of all rows into parts: text, token, text and so on.

        Args:
            characters: int32 (N,), code points.
            rows: int64 (N,), ascending, the row of each character.
            num_rows: int64.

        Returns:
            (lengths, ids, rows) of the P parts: int64 (P,), the characters of each; int32 (P,), the
            id of a token, and -1 for a text; int64 (P,).
        """
        import tensorflow as tf

        ragged = tf.RaggedTensor.from_value_rowids(characters, rows, num_rows, validate=False)
        texts = tf.strings.unicode_encode(ragged, "UTF-8")
        # No text has this byte, because it is no part of UTF-8.
        marked = tf.strings.regex_replace(texts, self._pattern, b"\xff\\1\xff")
        parts = tf.strings.split(marked, b"\xff")
        number = tf.ragged.range(parts.row_lengths()).values
        is_token = number % 2 == 1
        found = tf.boolean_mask(parts.values, is_token)
        matches = tf.cast(found[:, None] == self._tokens, tf.int32)
        found_ids = tf.gather(self._ids, tf.argmax(matches, axis=1))
        ids = tf.tensor_scatter_nd_update(
            tf.fill(tf.shape(number), -1), tf.where(is_token), found_ids
        )
        lengths = tf.cast(tf.strings.length(parts.values, unit="UTF8_CHAR"), tf.int64)
        return lengths, ids, parts.value_rowids()
