"""The answers for words in the graph of a SavedModel: the entities of texts."""

import dataclasses
from typing import Any

from keras_bert_suite.data.tag_schemes import entity_tables
from keras_bert_suite.preprocessing.packing import tensorflow_namespace
from keras_bert_suite.preprocessing.windows import share_windows
from keras_bert_suite.serving.text_packing import without_ladder


@dataclasses.dataclass(frozen=True)
class _Words:
    """The W words of B texts, one text after the other, as tensors.

    Attributes:
        rows: int32 (W,), the text of each word.
        starts, ends: int32 (W,), where it is in the text, in bytes.
        labels: int32 (W,), its most probable label.
        scores: float32 (W,), the probability of this label.
    """

    rows: Any
    starts: Any
    ends: Any
    labels: Any
    scores: Any


def find_entities(task, texts):
    """The entities of texts, as `TokenClassifier.predict` finds them.

    Returns:
        dict of `labels` string, `starts` and `ends` int32, `scores` float32, all (B, E) for the
        most entities of a text, filled up with "", -1, -1 and 0; and `num_entities` int32 (B,).
    """
    import tensorflow as tf

    # Only characters that Python's decoder keeps are counted.
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    words = _find_words(task, texts)
    *tables, types = entity_tables(task.label_names)
    begins, ends = _mark_borders(words, *tables)
    first_word, last_word = (tf.cast(tf.where(marks)[:, 0], tf.int32) for marks in (begins, ends))
    entity = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    num_ended = tf.cumsum(tf.cast(ends, tf.int32), exclusive=True)
    scores = tf.math.unsorted_segment_mean(
        words.scores,
        tf.where(entity >= num_ended, entity, -1),  # Words outside are left out.
        tf.size(first_word),
    )
    rows = tf.gather(words.rows, first_word)

    def count_characters(offset):
        """Characters before an offset in bytes."""
        before = tf.strings.substr(tf.gather(texts, rows), tf.zeros_like(offset), offset)
        return tf.strings.length(before, unit="UTF8_CHAR")

    def by_row(values, filler):
        ragged = tf.RaggedTensor.from_value_rowids(values, rows, nrows=tf.size(texts))
        return ragged.to_tensor(filler)

    return {
        "labels": by_row(tf.gather(tf.constant(types), tf.gather(words.labels, first_word)), ""),
        "starts": by_row(count_characters(tf.gather(words.starts, first_word)), -1),
        "ends": by_row(count_characters(tf.gather(words.ends, last_word)), -1),
        "scores": by_row(scores, 0.0),
        "num_entities": tf.math.bincount(rows, minlength=tf.size(texts), maxlength=tf.size(texts)),
    }


def _find_words(task, texts):
    """The words of texts, a string tensor (B,), with the answers for their first tokens."""
    import tensorflow as tf

    tokenizer = task.preprocessor.tokenizer
    ids, starts, ends, word_starts = tokenizer.tokenize_with_offsets(texts)
    first_token = tf.cast(tf.where(word_starts.flat_values)[:, 0], tf.int32)
    num_tokens, num_words = tf.size(ids.flat_values), tf.size(first_token)
    last_token = tf.concat([first_token[1:], [num_tokens]], axis=0)[:num_words] - 1
    rows = tf.cast(tf.gather(ids.value_rowids(), first_token), tf.int32)
    starts = tf.cast(tf.gather(starts.flat_values, first_token), tf.int32)
    ends = tf.cast(tf.gather(ends.flat_values, last_token), tf.int32)
    probabilities = tf.gather(_classify_tokens(task, ids), first_token)
    labels = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
    columns = rows, starts, ends, labels, tf.reduce_max(probabilities, axis=-1)
    if tokenizer.blank_words is not None:
        words = tf.strings.substr(tf.gather(texts, rows), starts, ends - starts)
        is_text = ~tf.strings.regex_full_match(words, tokenizer.blank_words)
        columns = (tf.boolean_mask(column, is_text) for column in columns)
    return _Words(*columns)


def _mark_borders(words, starts_table, ends_table):
    """bool (W,) twice: the words that begin an entity, and the words that end one."""
    import tensorflow as tf

    labels, num_words = words.labels, tf.size(words.labels)
    boundary = len(starts_table) - 1
    same_row = words.rows[1:] == words.rows[:-1]
    before = tf.concat([[boundary], tf.where(same_row, labels[:-1], boundary)], axis=0)[:num_words]
    after = tf.concat([tf.where(same_row, labels[1:], boundary), [boundary]], axis=0)[:num_words]
    begins = tf.gather_nd(tf.constant(starts_table), tf.stack([before, labels], axis=-1))
    ends = tf.gather_nd(tf.constant(ends_table), tf.stack([labels, after], axis=-1))
    return begins, ends


def _classify_tokens(task, ids):
    """float32 (T, C), the probabilities of the labels of each token of ragged ids (B, None)."""
    import tensorflow as tf

    packer = without_ladder(task.preprocessor)
    lengths = tf.cast(ids.row_lengths(), tf.int32)
    starts, lengths, _, own_starts, own_ends = share_windows(
        tensorflow_namespace(), tf.cumsum(lengths) - lengths, lengths, packer.count_places()
    )
    packed = packer.pack_tokens(ids.flat_values, starts, lengths)
    inputs = {name: packed[name] for name in task.backbone.input}
    answers = task.serving_outputs(task(inputs, training=False), inputs)
    place = packed["token_indices"] - starts[:, None]
    is_own = (place >= own_starts[:, None]) & (place < own_ends[:, None])
    # Special tokens and padding have the index -1.
    return tf.boolean_mask(answers["probabilities"], is_own & (packed["token_indices"] >= 0))
