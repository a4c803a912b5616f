"""The answers of a CRF in the graph of a SavedModel: the entities of the best paths."""

from keras_bert_suite.serving.entity_answers import find_entities


def find_chain_entities(task, texts):
    """The entities of texts, as `CrfTokenClassifier.predict` finds them. See `find_entities`."""
    return find_entities(task, texts, label_chains)


def label_chains(task, emissions, rows, num_texts):
    """The labels of the most probable path through the words of each text.

    Args: see `entity_answers.take_most_probable`.

    Returns:
        (labels int32 (W,), their marginal probabilities float32 (W,)).
    """
    import tensorflow as tf

    chains = tf.RaggedTensor.from_value_rowids(emissions, rows, nrows=num_texts)
    lengths = tf.cast(chains.row_lengths(), tf.int32)
    # Two columns more: without words there would be no step, and TensorFlow stacks no empty list.
    padded = tf.pad(chains.to_tensor(), [[0, 0], [0, 2], [0, 0]])
    is_word = tf.sequence_mask(lengths, tf.shape(padded)[1])
    labels = task.crf.decode(padded, lengths)
    probabilities = tf.gather(task.crf.marginals(padded, lengths), labels, batch_dims=2)
    return tf.boolean_mask(labels, is_word), tf.boolean_mask(probabilities, is_word)
