"""Packs texts in the graph of a SavedModel."""

from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import pack_segments, tensorflow_namespace
from keras_bert_suite.tasks import DocumentClassifier, MaskedLM, MultipleChoice


def make_packer(task):
    """Makes the task's `pack_texts` for a graph. Our packer then pads to the longest row.

    Args:
        task: a task under the TensorFlow backend.

    Returns:
        function from a tuple of string tensors (B,) to a dict of int32 (B, L), the inputs of the
        backbone. For a `MultipleChoice` it takes prompts (B,) and endings (B, K), and makes a dict
        of int32 (B, K, L). For a `DocumentClassifier` it makes a dict of int32 (B, W, L). For a
        `MaskedLM`, the mask token in a text becomes a mask.
    """
    import tensorflow as tf

    pack = task.pack_texts
    if isinstance(task.preprocessor, SegmentPacker):
        packer = without_ladder(task.preprocessor)

        def pack(texts):
            if isinstance(task, DocumentClassifier):
                return task.pack_with(packer, texts)
            return packer.pack(*texts)

    def pack_texts(texts):
        packed = pack(texts)
        # The padding masks of KerasHub are bool.
        return {name: tf.cast(packed[name], tf.int32) for name in task.backbone.input}

    def pack_choices(texts):
        prompts, endings = texts
        shape = tf.shape(endings)
        packed = pack_texts((tf.repeat(prompts, shape[1]), tf.reshape(endings, [-1])))
        # The number of rows is named, because a batch may have no row.
        return {
            name: tf.reshape(array, [shape[0], shape[1], tf.shape(array)[1]])
            for name, array in packed.items()
        }

    if isinstance(task, MaskedLM):
        return lambda texts: pack_masks(task, decode_texts(*texts))
    return pack_choices if isinstance(task, MultipleChoice) else pack_texts


def decode_texts(texts):
    """Leaves out bytes that are not UTF-8. Only characters that Python's decoder keeps count."""
    import tensorflow as tf

    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


def pack_masks(task, texts):
    """Packs texts in which the tokenizer's mask token stands in the place of tokens.

    Args:
        task: `MaskedLM`.
        texts: string tensor (B,), from `decode_texts`.

    Returns:
        dict of int32 (B, L), the inputs of the backbone.
    """
    import tensorflow as tf

    packer, tokenizer = task.preprocessor, task.preprocessor.tokenizer
    parts = tokenizer.split_at_masks(texts)
    ids = tokenizer.tokenize(parts.values)
    # Each part gets a mask before it. A text begins without a mask.
    masks = tf.fill([ids.nrows(), 1], tokenizer.mask_token_id)
    rows = parts.with_values(tf.concat([masks, ids], axis=1)).merge_dims(1, 2)[:, 1:]
    lengths = tf.cast(rows.row_lengths(), tf.int32)
    packed = pack_segments(
        tensorflow_namespace(),
        [(rows.flat_values, tf.cumsum(lengths) - lengths, lengths)],
        sequence_length=packer.sequence_length,
        **tokenizer.packing_arguments,
    )
    return {name: packed[name] for name in task.backbone.input}


def without_ladder(packer):
    """A copy of a packer that pads to the longest row.

    TensorFlow does not compile the graph for each length, so a ladder of lengths would only add
    padding.
    """
    config = {**packer.get_config(), "padding_lengths": None}
    return type(packer).from_config({**config, "tokenizer": packer.tokenizer})
