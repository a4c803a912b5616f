"""The answers of a CRF in the graph of a SavedModel: the entities of the best paths."""

from keras_bert_suite.serving.entity_answers import ServedEntities


class ServedChains(ServedEntities):
    """A `CrfTokenClassifier`: each word has its label on the best path through its text."""

    needs_graph = (
        "the file would hold its emissions without the search for the best path. Export a "
        "SavedModel, which answers with entities."
    )

    def label_words(self, outputs, rows, num_texts):
        """The labels of the most probable path through the words of each text.

        Args, Returns: see `ServedEntities.label_words`. The probabilities are marginal.
        """
        import tensorflow as tf

        crf = self.task.crf
        chains = tf.RaggedTensor.from_value_rowids(outputs, rows, nrows=num_texts)
        lengths = tf.cast(chains.row_lengths(), tf.int32)
        # Two columns more: without words there would be no step, and TensorFlow stacks no empty
        # list.
        padded = tf.pad(chains.to_tensor(), [[0, 0], [0, 2], [0, 0]])
        is_word = tf.sequence_mask(lengths, tf.shape(padded)[1])
        labels = crf.decode(padded, lengths)
        probabilities = tf.gather(crf.marginals(padded, lengths), labels, batch_dims=2)
        return tf.boolean_mask(labels, is_word), tf.boolean_mask(probabilities, is_word)
