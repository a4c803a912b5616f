"""The answers of an `EntitySpanClassifier` in the graph of a SavedModel: spans of texts."""

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.tags.served_words import find_words, list_entities, run_windows
from keras_bert_suite.tokenizers.engines import drop_invalid


class ServedEntitySpans(ServedTask):
    """An `EntitySpanClassifier`: the answers for texts are the entities of its `predict`."""

    def answer_texts(self, texts):
        """The entities of texts.

        Args, Returns: see `ServedEntities.answer_texts`.
        """
        import tensorflow as tf

        columns = self.encode_features(texts[1:])
        task, texts = self.task, drop_invalid(texts[0])
        words = find_words(task.preprocessor.tokenizer, texts, task.word_cutting)
        num_tokens, num_words = tf.size(words.ids.flat_values), tf.size(words.rows)
        # The word that begins with each token. Other tokens, and the one at the end, have none.
        word_of = tf.tensor_scatter_nd_update(
            tf.fill([num_tokens + 1], -1), words.first_tokens[:, None], tf.range(num_words)
        )
        first, last, kind, scores = run_windows(
            task,
            self.data.packer,
            words.ids,
            lambda windows: _find_spans(windows, word_of),
            columns,
        )
        keys = tf.cast(tf.stack([first, last, kind]), tf.int64)
        width = tf.cast(num_words, tf.int64)
        order = tf.argsort((keys[0] * width + keys[1]) * task.num_classes + keys[2], stable=True)
        first, last, kind, scores = (tf.gather(c, order) for c in (first, last, kind, scores))
        return list_entities(
            texts,
            tf.gather(words.rows, first),
            tf.gather(tf.constant(task.label_names), kind),
            tf.gather(words.starts, first),
            tf.gather(words.ends, last),
            tf.sigmoid(scores),
        )


def _find_spans(windows, word_of):
    """The first word, last word, label, int32 (E,), and score of each span of a batch of windows.

    `word_of`, int32 (T + 1,), is the word that begins with each of the T tokens, or -1.
    """
    import tensorflow as tf

    found = tf.where(windows.outputs > 0)
    scores = tf.gather_nd(windows.outputs, found)
    window, kind, *edges = (tf.cast(column, tf.int32) for column in tf.unstack(found, axis=-1))
    places, edge_words = [], []
    for edge in edges:
        where = tf.stack([window, edge], axis=-1)
        token = tf.gather_nd(windows.token_indices, where)
        places.append(tf.gather_nd(windows.places, where))
        edge_words.append(tf.gather(word_of, tf.where(token >= 0, token, tf.size(word_of) - 1)))
    first, last = edge_words
    # The window that sees the most context around the middle of a span answers for it.
    middle = sum(places) // 2
    is_own = (first >= 0) & (last >= 0)
    is_own &= middle >= tf.gather(windows.own_starts, window)
    is_own &= middle < tf.gather(windows.own_ends, window)
    return [tf.boolean_mask(column, is_own) for column in (first, last, kind, scores)]
