"""Packs texts in the graph of a SavedModel."""

from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks import MultipleChoice


def make_packer(task):
    """Makes the task's `pack_texts` for a graph. Our packer then pads to the longest row.

    Args:
        task: a task under the TensorFlow backend.

    Returns:
        function from a tuple of string tensors (B,) to a dict of int32 (B, L), the inputs of the
        backbone. For a `MultipleChoice` it takes prompts (B,) and endings (B, K), and makes a dict
        of int32 (B, K, L).
    """
    import tensorflow as tf

    pack = task.pack_texts
    if isinstance(task.preprocessor, SegmentPacker):
        packer = without_ladder(task.preprocessor)

        def pack(texts):
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

    return pack_choices if isinstance(task, MultipleChoice) else pack_texts


def without_ladder(packer):
    """A copy of a packer that pads to the longest row.

    TensorFlow does not compile the graph for each length, so a ladder of lengths would only add
    padding.
    """
    config = {**packer.get_config(), "padding_lengths": None}
    return type(packer).from_config({**config, "tokenizer": packer.tokenizer})
