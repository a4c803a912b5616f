"""The words of texts in the graph of a SavedModel, and the entities made of words."""

import dataclasses
from typing import Any

from keras_bert_suite.heads.base.served_texts import (
    count_characters,
    cut_texts,
    make_segment,
    run_in_batches,
)
from keras_bert_suite.heads.tags.served_cutting import cut_texts_into_words
from keras_bert_suite.preprocessing.packing import tensorflow_namespace
from keras_bert_suite.preprocessing.windows import share_windows


@dataclasses.dataclass(frozen=True)
class TextWords:
    """The W words of B texts, one text after the other, as tensors.

    Attributes:
        ids: ragged int32 (B, None), the tokens of the texts.
        first_tokens: int32 (W,), where each word begins among the tokens of all texts.
        rows: int32 (W,), the text of each word.
        starts, ends: int32 (W,), where the word is in the text, in bytes.
    """

    ids: Any
    first_tokens: Any
    rows: Any
    starts: Any
    ends: Any


@dataclasses.dataclass(frozen=True)
class TokenWindows:
    """The outputs of the model for a batch of N windows over the tokens of texts, as tensors.

    Attributes:
        outputs: the outputs of the model, (N, ...).
        token_indices: int32 (N, L), the number of each token among the tokens of all texts; -1 on
            special tokens and padding.
        places: int32 (N, L), the place of each token in its window, counted from its first token.
        own_starts, own_ends: int32 (N,), the positions for which each window answers.
    """

    outputs: Any
    token_indices: Any
    places: Any
    own_starts: Any
    own_ends: Any


def find_words(tokenizer, texts, cutting=None):
    """`TextWords` of texts, a string tensor (B,) from `drop_invalid`.

    `cutting`, a `WordCutting`, finds the words. If it is None, the tokenizer does.
    """
    import tensorflow as tf

    if cutting is not None:
        return _cut_words(tokenizer, texts, cutting)
    ids, starts, ends, word_starts = tokenizer.tokenize_with_offsets(texts)
    first_tokens = tf.cast(tf.where(word_starts.flat_values)[:, 0], tf.int32)
    num_tokens, num_words = tf.size(word_starts.flat_values), tf.size(first_tokens)
    last_tokens = tf.concat([first_tokens[1:], [num_tokens]], axis=0)[:num_words] - 1
    rows = tf.cast(tf.gather(ids.value_rowids(), first_tokens), tf.int32)
    starts = tf.cast(tf.gather(starts.flat_values, first_tokens), tf.int32)
    ends = tf.cast(tf.gather(ends.flat_values, last_tokens), tf.int32)
    columns = first_tokens, rows, starts, ends
    if tokenizer.blank_words is not None:
        words = cut_texts(texts, rows, starts, ends)
        is_text = ~tf.strings.regex_full_match(words, tokenizer.blank_words)
        columns = (tf.boolean_mask(column, is_text) for column in columns)
    return TextWords(ids, *columns)


def _cut_words(tokenizer, texts, cutting):
    """`TextWords` of texts that a `WordCutting` cuts. A word without a token is left out."""
    import tensorflow as tf

    rows, starts, ends = cut_texts_into_words(cutting, texts)
    ids = tokenizer.tokenize_words(cut_texts(texts, rows, starts, ends))
    lengths = tf.math.unsorted_segment_sum(ids.row_lengths(), rows, tf.size(texts))
    has_token = ids.row_lengths() > 0
    columns = tf.cast(ids.row_starts(), tf.int32), rows, starts, ends
    return TextWords(
        tf.RaggedTensor.from_row_lengths(ids.values, lengths, validate=False),
        *(tf.boolean_mask(column, has_token) for column in columns),
    )


def run_windows(task, packer, ids, read, columns):
    """Runs the model on windows over ragged ids (B, None), in batches of a bounded size.

    `columns` is a dict of the inputs of the model that each of the B rows has.

    `read` makes of the `TokenWindows` of a batch a list of tensors. The result has them of all
    batches, joined along the first axis.
    """
    import tensorflow as tf

    tokens, *where = make_segment(ids)
    starts, lengths, rows, own_starts, own_ends = share_windows(
        tensorflow_namespace(), *where, packer.count_places()
    )

    def run(begin, end):
        first_tokens = starts[begin:end]
        packed = packer.pack_tokens(tokens, first_tokens, lengths[begin:end])
        beside = {name: tf.gather(column, rows[begin:end]) for name, column in columns.items()}
        outputs = task({**task.data.encoder.select(packed), **beside}, training=False)
        indices = packed["token_indices"]
        places = indices - first_tokens[:, None]
        own = own_starts[begin:end], own_ends[begin:end]
        return read(TokenWindows(outputs, indices, places, *own))

    return run_in_batches(run, lengths)


def list_entities(texts, rows, labels, starts, ends, scores):
    """The answers for E entities, in the order of the texts, string (B,); see `make_signatures`.

    `rows`, int32 (E,), says in which text each entity is. Starts and ends count bytes. The answers
    are (B, M), M the largest number of entities of a text.
    """
    import tensorflow as tf

    def by_row(values, filler):
        ragged = tf.RaggedTensor.from_value_rowids(values, rows, nrows=tf.size(texts))
        return ragged.to_tensor(filler)

    return {
        "labels": by_row(labels, ""),
        "starts": by_row(count_characters(texts, rows, starts), -1),
        "ends": by_row(count_characters(texts, rows, ends), -1),
        "byte_starts": by_row(starts, -1),
        "byte_ends": by_row(ends, -1),
        "scores": by_row(scores, 0.0),
        "num_entities": tf.math.bincount(rows, minlength=tf.size(texts), maxlength=tf.size(texts)),
    }
