"""Refuses ids for which a model has no vector. TensorFlow and ONNX count -1 from the end."""

from keras import ops

from keras_bert_suite.models.encoder import Encoder


def count_rows(encoder):
    """dict of the name of an encoder's input -> int, how many ids it may have: ids from 0 on."""
    facts = Encoder.of(encoder)
    counts = {"token_ids": facts.vocabulary_size, "segment_ids": facts.num_segments}
    return {name: count for name, count in counts.items() if count and name in encoder.input}


def count_common_rows(encoders):
    """dict as from `count_rows`, of the ids that all encoders of a list have."""
    counts = [count_rows(encoder) for encoder in encoders]
    names = dict.fromkeys(name for own in counts for name in own)
    return {name: min(own[name] for own in counts if name in own) for name in names}


def check_ids(inputs, counts):
    """The inputs, dict of int32 tensors, in a graph that refuses ids out of range.

    Running the graph raises an InvalidArgumentError for such an id. `counts` is from `count_rows`.
    """
    import tensorflow as tf

    assertions = [
        tf.debugging.Assert(
            tf.reduce_all((inputs[name] >= 0) & (inputs[name] < count)),
            [f"{name} must be from 0 to {count - 1}. The lowest and the highest value are:"]
            + [reduce(inputs[name]) for reduce in (tf.reduce_min, tf.reduce_max)],
        )
        for name, count in counts.items()
    ]
    with tf.control_dependencies(assertions):
        return {name: tf.identity(tensor) for name, tensor in inputs.items()}


def replace_negative_ids(inputs, counts):
    """Replaces negative ids by an id that is too large, which ONNX Runtime refuses.

    ONNX has no assertion. The inputs are symbolic tensors of Keras.
    """
    return {
        name: ops.where(tensor < 0, counts[name], tensor) if name in counts else tensor
        for name, tensor in inputs.items()
    }
