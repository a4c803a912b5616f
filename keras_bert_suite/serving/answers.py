"""The answers of a SavedModel's signatures: classes of texts, or entities in texts."""

from keras_bert_suite.data.tag_schemes import entity_tables
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import tensorflow_namespace
from keras_bert_suite.preprocessing.windows import share_windows
from keras_bert_suite.tasks import TokenClassifier


def make_answers(task):
    """Makes the functions from texts to answers, and from token ids to answers, of a task.

    Args:
        task: `TextClassifier` or `TokenClassifier` under the TensorFlow backend.

    Returns:
        `(answer_texts, answer_ids)`. `answer_texts` takes a tuple of string tensors (B,),
        `answer_ids` a dict of int32 (B, L). Both return a dict of tensors.
    """
    pack = make_packer(task)

    def answer_ids(packed):
        return _classify(task, packed)

    if isinstance(task, TokenClassifier):
        return lambda texts: _find_entities(task, *texts), answer_ids
    return lambda texts: answer_ids(pack(texts)), answer_ids


def make_packer(task):
    """Makes the task's `pack_texts` for a graph. Our packer then pads to the longest row.

    Args:
        task: `TextClassifier` or `TokenClassifier` under the TensorFlow backend.

    Returns:
        function from a tuple of string tensors (B,) to a dict of int32 (B, L), the inputs of the
        backbone.
    """
    import tensorflow as tf

    pack = task.pack_texts
    if isinstance(task.preprocessor, SegmentPacker):
        packer = _without_ladder(task.preprocessor)

        def pack(texts):
            return packer.pack(*texts)

    def pack_texts(texts):
        packed = pack(texts)
        # The padding masks of KerasHub are bool.
        return {name: tf.cast(packed[name], tf.int32) for name in task.backbone.input}

    return pack_texts


def _without_ladder(packer):
    """A copy of a packer that pads to the longest row.

    TensorFlow does not compile the graph for each length, so a ladder of lengths would only add
    padding.
    """
    config = {**packer.get_config(), "padding_lengths": None}
    return type(packer).from_config({**config, "tokenizer": packer.tokenizer})


def _classify(task, packed):
    """The task's `serving_outputs`, and the names of the labels."""
    import tensorflow as tf

    answers = task.serving_outputs(task(packed, training=False), packed)
    return {**answers, "labels": tf.gather(tf.constant(task.label_names), answers["label_ids"])}


def _find_entities(task, texts):
    """The entities of texts, as `TokenClassifier.predict` finds them.

    Returns:
        dict of `labels` string, `starts` and `ends` int32, `scores` float32, all (B, E) for the
        most entities of a text, filled up with "", -1, -1 and 0; and `num_entities` int32 (B,).
    """
    import tensorflow as tf

    # Only characters that Python's decoder keeps are counted.
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    ids, starts, ends, word_starts = task.preprocessor.tokenizer.tokenize_with_offsets(texts)
    probabilities = _classify_tokens(task, ids)

    # === Words ===
    row_of_token = tf.cast(ids.value_rowids(), tf.int32)
    begins_row = tf.concat([[True], row_of_token[1:] != row_of_token[:-1]], axis=0)
    begins_word = word_starts.flat_values | begins_row[: tf.size(row_of_token)]
    first_token = tf.cast(tf.where(begins_word)[:, 0], tf.int32)
    num_words = tf.size(first_token)
    last_token = tf.concat([first_token[1:], [tf.size(row_of_token)]], axis=0)[:num_words] - 1
    row = tf.gather(row_of_token, first_token)
    probabilities = tf.gather(probabilities, first_token)
    labels = tf.argmax(probabilities, axis=-1, output_type=tf.int32)

    # === Entities ===
    starts_table, ends_table, types = entity_tables(task.label_names)
    boundary = len(task.label_names)
    same_row = row[1:] == row[:-1]
    before = tf.concat([[boundary], tf.where(same_row, labels[:-1], boundary)], axis=0)[:num_words]
    after = tf.concat([tf.where(same_row, labels[1:], boundary), [boundary]], axis=0)[:num_words]
    begins = tf.gather_nd(tf.constant(starts_table), tf.stack([before, labels], axis=-1))
    finishes = tf.gather_nd(tf.constant(ends_table), tf.stack([labels, after], axis=-1))
    first_word, last_word = (
        tf.cast(tf.where(marks)[:, 0], tf.int32) for marks in (begins, finishes)
    )
    entity = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    num_finished = tf.cumsum(tf.cast(finishes, tf.int32), exclusive=True)
    scores = tf.math.unsorted_segment_mean(
        tf.reduce_max(probabilities, axis=-1),
        tf.where(entity >= num_finished, entity, -1),  # Words outside are left out.
        tf.size(first_word),
    )
    entity_row = tf.gather(row, first_word)

    def count_characters(offsets, words):
        """Characters before an offset in bytes."""
        offset = tf.cast(tf.gather(offsets.flat_values, words), tf.int32)
        before = tf.strings.substr(tf.gather(texts, entity_row), tf.zeros_like(offset), offset)
        return tf.strings.length(before, unit="UTF8_CHAR")

    def by_row(values, filler):
        rows = tf.RaggedTensor.from_value_rowids(values, entity_row, nrows=tf.size(texts))
        return rows.to_tensor(filler)

    return {
        "labels": by_row(tf.gather(tf.constant(types), tf.gather(labels, first_word)), ""),
        "starts": by_row(count_characters(starts, tf.gather(first_token, first_word)), -1),
        "ends": by_row(count_characters(ends, tf.gather(last_token, last_word)), -1),
        "scores": by_row(scores, 0.0),
        "num_entities": tf.math.bincount(
            entity_row, minlength=tf.size(texts), maxlength=tf.size(texts)
        ),
    }


def _classify_tokens(task, ids):
    """float32 (T, C), the probabilities of the labels of each token of ragged ids (B, None)."""
    import tensorflow as tf

    packer = _without_ladder(task.preprocessor)
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
