"""Turns labels of words into entities in the graph of a SavedModel."""

from keras import ops

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.tags.served_words import find_words, list_entities, run_windows
from keras_bert_suite.heads.tags.tag_schemes import entity_tables
from keras_bert_suite.preprocessing.packing import tensorflow_namespace
from keras_bert_suite.tokenizers.engines import drop_invalid


class ServedEntities(ServedTask):
    """A `TokenClassifier`: the answers for texts are the entities of its `predict`."""

    def answer_texts(self, texts):
        """The entities of one string tensor (B,), see `list_entities`."""
        import tensorflow as tf

        columns = self.encode_features(texts[1:])
        texts = drop_invalid(texts[0])
        words = find_words(self.task.preprocessor.tokenizer, texts, self.task.word_cutting)
        outputs = tf.gather(self._run_tokens(words.ids, columns), words.first_tokens)
        labels, scores = self.label_words(outputs, words.rows, tf.size(texts))
        *tables, types = entity_tables(self.task.label_names)
        begins, ends = _mark_borders(labels, words.rows, *tables)
        first_word, last_word = (
            tf.cast(tf.where(marks)[:, 0], tf.int32) for marks in (begins, ends)
        )
        entity = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        num_ended = tf.cumsum(tf.cast(ends, tf.int32), exclusive=True)
        scores = tf.math.unsorted_segment_mean(
            scores,
            tf.where(entity >= num_ended, entity, -1),  # Words outside are left out.
            tf.size(first_word),
        )
        return list_entities(
            texts,
            tf.gather(words.rows, first_word),
            tf.gather(tf.constant(types), tf.gather(labels, first_word)),
            tf.gather(words.starts, first_word),
            tf.gather(words.ends, last_word),
            scores,
        )

    def label_words(self, outputs, rows, num_texts):
        """The most probable label of each word by itself, int32 (W,), and its probability.

        `outputs`, float32 (W, C), belong to the first tokens of the words of all texts. `rows`,
        int32 (W,), has the text of each word.
        """
        import tensorflow as tf

        probabilities = tf.nn.softmax(outputs)
        labels = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        return labels, tf.reduce_max(probabilities, axis=-1)

    def _run_tokens(self, ids, columns):
        """float32 (T, C), the outputs of the model for each token of ragged ids (B, None)."""
        import tensorflow as tf

        def read(windows):
            is_own = windows.places >= windows.own_starts[:, None]
            is_own &= windows.places < windows.own_ends[:, None]
            # Special tokens and padding have the index -1.
            return [tf.boolean_mask(windows.outputs, is_own & (windows.token_indices >= 0))]

        (outputs,) = run_windows(self.task, self.data.packer, ids, read, columns)
        return outputs


class ServedFrameChains(ServedTask):
    """A `CrfTokenClassifier` on frames: each frame has its label on the best path of its row."""

    def answer_ids(self, packed):
        """`label_ids` int32 (B, L), `labels`, and the marginal `probabilities` (B, L, C)."""
        crf, emissions = self.task.crf, self.task(packed, training=False)
        lengths = ops.sum(packed["padding_mask"], axis=1)
        served = {
            "probabilities": crf.marginals(emissions, lengths),
            "label_ids": crf.decode(emissions, lengths),
        }
        return self.task.answers.name_served(tensorflow_namespace(), served)


class ServedChains(ServedEntities):
    """A `CrfTokenClassifier`: each word has its label on the best path through its text."""

    of_frames = ServedFrameChains

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


def _mark_borders(labels, rows, starts_table, ends_table):
    """bool (W,) twice: the words that begin an entity, and the words that end one."""
    import tensorflow as tf

    num_words = tf.size(labels)
    boundary = len(starts_table) - 1
    same_row = rows[1:] == rows[:-1]
    before = tf.concat([[boundary], tf.where(same_row, labels[:-1], boundary)], axis=0)[:num_words]
    after = tf.concat([tf.where(same_row, labels[1:], boundary), [boundary]], axis=0)[:num_words]
    begins = tf.gather_nd(tf.constant(starts_table), tf.stack([before, labels], axis=-1))
    ends = tf.gather_nd(tf.constant(ends_table), tf.stack([labels, after], axis=-1))
    return begins, ends
