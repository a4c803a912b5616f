"""Finds added tokens in texts in a TensorFlow graph, as `EagerAddedTokens` does in Python."""

import re
from functools import partial
from typing import Any, NamedTuple

from keras_bert_suite.tokenizers.added_tokens import WHITE_SPACE
from keras_bert_suite.tokenizers.engines import GraphEngine, drop_invalid, place_in, take_neighbour
from keras_bert_suite.tokenizers.unicode_rules import re2_class

#: The characters that Rust's `\\w` matches.
_WORD = r"[\pL\pM\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f189}]"
_SPACES = f"[{WHITE_SPACE}]+"
#: A token whose characters are all deleted is nowhere.
_NOTHING = r"[^\x00-\x{10ffff}]"

#: No text has this byte, because it is no part of UTF-8.
_MARK = b"\xff"


class Spans(NamedTuple):
    """Parts of N texts, in their order. Offsets are in bytes.

    Attributes:
        text: int64 (P,), the text of each part, ascending.
        start, end: int64 (P,).
        number: int64 (P,), the number of the token that each part is; None for text.
    """

    text: Any
    start: Any
    end: Any
    number: Any = None


class GraphAddedTokens(GraphEngine):
    """A graph engine for texts with added tokens. It takes arguments as `EagerAddedTokens`."""

    def __init__(self, engine, tokens, ids):
        import tensorflow as tf

        self._engine = engine
        verbatim = [token for token in tokens if not token.normalized]
        others = [token for token in tokens if token.normalized]
        self._finders = []
        if verbatim:
            self._finders.append(TokenFinder(verbatim, [t.content for t in verbatim]))
        if others:
            contents = [engine.normalize_token(token.content) for token in others]
            self._finders.append(
                TokenFinder(others, contents, engine.normalize_with_places, engine.spaced)
            )
        with tf.init_scope():
            self._ids = [tf.constant([ids[t.content] for t in f.tokens]) for f in self._finders]

    def _tokenize_rows(self, texts):
        return self._tokenize_clean(drop_invalid(texts), self._count_nothing)[0]

    def _count_nothing(self, texts):
        return (self._engine._tokenize_rows(texts),)

    def _tokenize_rows_with_offsets(self, texts):
        import tensorflow as tf

        clean = drop_invalid(texts)
        ids, starts, ends, begins = self._tokenize_clean(
            clean, self._engine._tokenize_rows_with_offsets
        )
        starts, ends = tf.cond(
            tf.reduce_any(clean != texts),
            lambda: (place_in(texts, clean, starts), place_in(texts, clean, ends)),
            lambda: (starts, ends),
        )
        return ids, starts, ends, begins

    def _tokenize_clean(self, texts, tokenize):
        """Texts (N,) -> the columns of `tokenize`, ragged (N, None), with the added tokens."""
        import tensorflow as tf

        count = tf.size(texts, tf.int64)
        rows, found = tf.range(count), []
        parts = Spans(rows, tf.zeros_like(rows), tf.cast(tf.strings.length(texts), tf.int64))
        for finder, ids in zip(self._finders, self._ids, strict=True):
            tokens, parts = _find_in_parts(finder, texts, parts)
            found.append((tokens, tf.gather(ids, tokens.number)))
        strings = _cut(texts, parts)
        part, *columns = _flatten(tokenize(strings))
        row, first = tf.gather(parts.text, part), tf.gather(parts.start, part)
        # ids, starts, ends, and whether a word begins; or ids alone.
        columns[1:3] = [offsets + first for offsets in columns[1:3]]
        rows, firsts = [row], [first]
        tables = [columns]
        for tokens, ids in found:
            rows.append(tokens.text)
            firsts.append(tokens.start)
            table = [ids, tokens.start, tokens.end, tf.ones_like(ids, tf.bool)]
            tables.append(table[: len(columns)])
        row, first = tf.concat(rows, axis=0), tf.concat(firsts, axis=0)
        length = tf.reduce_max(tf.concat([[0], tf.strings.length(texts)], axis=0))
        order = tf.argsort(row * (tf.cast(length, tf.int64) + 1) + first, stable=True)
        row = tf.gather(row, order)
        return tuple(
            tf.RaggedTensor.from_value_rowids(
                tf.gather(tf.concat(column, axis=0), order), row, count, validate=False
            )
            for column in zip(*tables, strict=True)
        )


class TokenFinder:
    """Finds tokens in texts.

    Args:
        tokens: list of `AddedToken`, at least one.
        contents: list of str, the form of each in a normalized text.
        normalize: function of texts (N,) -> (normalized texts, ragged (N, None) int64: where each
            of their bytes begins in the text; and where it ends). None to take texts as they are.
        lone: table of the characters that are no parts of words, or None.
    """

    def __init__(self, tokens, contents, normalize=None, lone=None):
        import tensorflow as tf

        self.tokens = tokens
        self._normalize = normalize
        longest_first = sorted(filter(None, contents), key=len, reverse=True)
        self._pattern = f"({'|'.join(map(re.escape, longest_first)) or _NOTHING})"
        self._lone = lone and f"[{re2_class(lone)}]"
        self._has_single_words = any(token.single_word for token in tokens)
        self._strips = any(token.lstrip or token.rstrip for token in tokens)
        with tf.init_scope():
            self._contents = tf.constant(contents)
            self._single_word = tf.constant([token.single_word for token in tokens])
            self._lstrip = tf.constant([token.lstrip for token in tokens])
            self._rstrip = tf.constant([token.rstrip for token in tokens])

    def find(self, texts):
        """Texts (N,) -> `Spans` of the tokens."""
        import tensorflow as tf

        places = None
        if self._normalize is not None:
            texts, *places = self._normalize(texts)
        marked = tf.strings.regex_replace(texts, self._pattern, _MARK + b"\\1" + _MARK)
        parts = tf.strings.split(marked, _MARK)
        if self._has_single_words:
            parts = self._join_parts_of_words(parts)
        values, row = parts.values, parts.value_rowids()
        length = tf.cast(tf.strings.length(values), tf.int64)
        before = tf.cumsum(length, exclusive=True)
        start = before - tf.gather(before, tf.gather(parts.row_starts(), row))
        is_token = _is_token(parts)
        row, start, length, values = (
            tf.boolean_mask(x, is_token) for x in (row, start, length, values)
        )
        last = start + length - 1
        if places is None:
            start, end = start, last + 1
        else:
            starts, ends = places
            first_byte = tf.gather(starts.row_starts(), row)
            start = tf.gather(starts.values, first_byte + start)
            end = tf.gather(ends.values, first_byte + last)
        return Spans(row, start, end, self._number(values))

    def list_between(self, texts, tokens):
        """The parts of texts (N,) that are no tokens. Empty parts are left out."""
        import tensorflow as tf

        count = tf.size(texts, tf.int64)

        def rows(values):
            return tf.RaggedTensor.from_value_rowids(values, tokens.text, count, validate=False)

        length = tf.cast(tf.strings.length(texts), tf.int64)
        first = tf.zeros([count, 1], tf.int64)
        start = tf.concat([first, rows(tokens.end)], axis=1)
        end = tf.concat([rows(tokens.start), length[:, None]], axis=1).values
        parts = Spans(start.value_rowids(), start.values, end)
        if self._strips:
            never = tf.zeros([count, 1], tf.bool)
            lstrip, rstrip = (tf.gather(t, tokens.number) for t in (self._lstrip, self._rstrip))
            parts = _strip(
                texts,
                parts,
                tf.concat([never, rows(rstrip)], axis=1).values,
                tf.concat([rows(lstrip), never], axis=1).values,
            )
        is_kept = parts.start < parts.end
        return Spans(*(tf.boolean_mask(x, is_kept) for x in parts[:3]))

    def _number(self, values):
        import tensorflow as tf

        # The first of several tokens with the same normalized text counts.
        return tf.argmax(tf.cast(values[:, None] == self._contents, tf.int32), axis=1)

    def _join_parts_of_words(self, parts):
        """Takes the tokens for text that are a part of a word, and must not be."""
        import tensorflow as tf

        values, row, is_token = parts.values, parts.value_rowids(), _is_token(parts)
        read = partial(take_neighbour, values, row, outside="")
        before, after = read(-2) + read(-1), read(1) + read(2)
        in_word = self._is_word(before, "(?s).*{}") | self._is_word(after, "(?s){}.*")
        fails = in_word & tf.gather(self._single_word, self._number(values))
        marked = tf.where(is_token & ~fails, _MARK + values + _MARK, values)
        joined = tf.strings.reduce_join(parts.with_values(marked), axis=-1)
        return tf.strings.split(joined, _MARK)

    def _is_word(self, texts, place):
        import tensorflow as tf

        is_word = tf.strings.regex_full_match(texts, place.format(_WORD))
        if self._lone is None:
            return is_word
        return is_word & ~tf.strings.regex_full_match(texts, place.format(self._lone))


def _find_in_parts(finder, texts, parts):
    """(`Spans` of the tokens in parts of texts, `Spans` of the rest of the parts)."""
    import tensorflow as tf

    strings = _cut(texts, parts)
    tokens = finder.find(strings)
    between = finder.list_between(strings, tokens)

    def place(spans):
        first = tf.gather(parts.start, spans.text)
        row = tf.gather(parts.text, spans.text)
        return Spans(row, spans.start + first, spans.end + first, spans.number)

    return place(tokens), place(between)


def _cut(texts, parts):
    import tensorflow as tf

    return tf.strings.substr(tf.gather(texts, parts.text), parts.start, parts.end - parts.start)


def _strip(texts, parts, left, right):
    """Parts without the spaces at their ends, where `left` and `right`, bool (P,), are true."""
    import tensorflow as tf

    def count(pattern, where):
        strings = _cut(texts, parts)
        stripped = tf.strings.length(tf.strings.regex_replace(strings, pattern, ""))
        return tf.cast(tf.where(where, tf.strings.length(strings) - stripped, 0), tf.int64)

    parts = parts._replace(start=parts.start + count(f"^{_SPACES}", left))
    return parts._replace(end=parts.end - count(f"{_SPACES}$", right))


def _flatten(columns):
    """Ragged (P, None) each -> the row of each value, and the values of each column."""
    return [columns[0].value_rowids(), *(column.flat_values for column in columns)]


def _is_token(parts):
    """bool, which parts are tokens: text and tokens take turns, and text is first."""
    import tensorflow as tf

    return tf.ragged.range(parts.row_lengths()).values % 2 == 1
