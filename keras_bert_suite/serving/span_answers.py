"""The answers to questions in the graph of a SavedModel: the best span of each context."""

from keras_bert_suite.preprocessing.packing import tensorflow_namespace
from keras_bert_suite.preprocessing.windows import share_strided_windows, slide_windows
from keras_bert_suite.serving.served_task import ServedTask
from keras_bert_suite.serving.text_words import count_characters, decode_texts
from keras_bert_suite.tasks.data.question_windows import find_room


class ServedSpans(ServedTask):
    """A `QuestionAnswerer`: the answers for texts are the spans of its `predict`."""

    def answer_texts(self, texts):
        """The answers to questions.

        Args:
            texts: (questions, contexts), string tensors (B,).

        Returns:
            dict of `answers` string, `starts` and `ends` int32, in characters, `byte_starts` and
            `byte_ends` int32, `scores` and `null_odds` float32, all (B,). For no answer the text is
            "" and the positions are -1.
        """
        import tensorflow as tf

        task, questions, contexts = self.task, texts[0], decode_texts(texts[1])
        ids, starts, ends, _ = task.preprocessor.tokenizer.tokenize_with_offsets(contexts)
        starts, ends = (tf.cast(places.flat_values, tf.int32) for places in (starts, ends))
        row_ids, tokens, is_own, scores, summary = self._score_windows(questions, ids)
        is_token = (tokens >= 0) & ~_take(_find_blank(task, contexts, ids, starts, ends), tokens)
        spans = _add_spans(
            tf.where(is_own & is_token, scores[:, 0], -float("inf")),
            tf.where(is_token, scores[:, 1], -float("inf")),
            task.answers.max_answer_length,
        )
        num_rows = tf.size(contexts)
        nulls = tf.gather(tf.reduce_sum(scores, axis=1), summary, axis=1, batch_dims=1)
        nulls = tf.math.unsorted_segment_min(nulls, row_ids, num_rows)
        best, first, last = _find_best(spans, tokens, row_ids, num_rows)
        null_odds = nulls - best
        is_null = ~tf.math.is_finite(best)
        highest = best
        if task.no_answer_threshold is not None:
            is_null |= null_odds > task.no_answer_threshold
            highest = tf.maximum(best, nulls)
        # The probability of the best span, or of no answer, among all of them.
        highest = tf.where(tf.math.is_finite(highest), highest, 0.0)
        powers = tf.exp(spans - tf.gather(highest, row_ids)[:, None, None])
        total = tf.math.unsorted_segment_sum(tf.reduce_sum(powers, axis=[1, 2]), row_ids, num_rows)
        chosen = best
        if task.no_answer_threshold is not None:
            total += tf.exp(nulls - highest)
            chosen = tf.where(is_null, nulls, best)

        start, end = _take(starts, first), _take(ends, last)
        places = {
            "starts": count_characters(contexts, start),
            "ends": count_characters(contexts, end),
            "byte_starts": start,
            "byte_ends": end,
        }
        return {
            "answers": tf.where(is_null, "", tf.strings.substr(contexts, start, end - start)),
            **{name: tf.where(is_null, -1, place) for name, place in places.items()},
            "scores": tf.math.divide_no_nan(tf.exp(chosen - highest), total),
            "null_odds": null_odds,
        }

    def _score_windows(self, questions, ids):
        """Runs the model on the windows of contexts.

        Args:
            questions: string (B,).
            ids: ragged int32 (B, None), the tokens of the contexts.

        Returns:
            `row_ids` int32 (N,), the row of each window; `tokens` int32 (N, L), the position of
            each token in `ids.flat_values`, -1 for tokens that are not of the context; `is_own`
            bool (N, L), the tokens with which answers of the window begin; scores float32 (N, 2,
            L); `summary` int32 (N,), the position of the summary token.
        """
        import tensorflow as tf

        xp, task, packer = tensorflow_namespace(), self.task, self.packer
        stride, query_length, budget = find_room(packer, task.data.stride, task.data.query_length)

        def as_segment(ragged):
            lengths = tf.cast(ragged.row_lengths(), tf.int32)
            return ragged.flat_values, tf.cumsum(lengths) - lengths, lengths

        question, context = as_segment(packer.tokenizer.tokenize(questions)), as_segment(ids)
        (question, window), row_ids = slide_windows(
            xp, [question, context], budget, stride, query_length
        )
        _, window_starts, lengths = window
        begins = window_starts - tf.gather(context[1], row_ids)
        own_starts, own_ends = share_strided_windows(xp, begins, lengths, row_ids)
        packed = packer.pack_tokens(*window, queries=[question])
        tokens = packed["token_indices"]
        place = tokens - window_starts[:, None]
        is_own = (place >= own_starts[:, None]) & (place < own_ends[:, None])
        inputs = task.data.encoder.select(packed)
        template = packer.tokenizer.row_template
        summary = template.find_summary([question[2], lengths])
        summary += template.find_origin(tf.shape(tokens)[1]) + tf.zeros_like(lengths)
        return row_ids, tokens, is_own, task(inputs, training=False), summary


def _find_blank(task, contexts, ids, starts, ends):
    """bool (T,), the tokens of white space, with which no answer begins or ends."""
    import tensorflow as tf

    blank_words = task.preprocessor.tokenizer.blank_words
    if blank_words is None:
        return tf.zeros_like(starts, tf.bool)
    texts = tf.strings.substr(tf.gather(contexts, ids.value_rowids()), starts, ends - starts)
    return tf.strings.regex_full_match(texts, blank_words)


def _take(values, places):
    """The values at positions. Position -1 has the value 0, or False, even without any value."""
    import tensorflow as tf

    return tf.gather(tf.pad(values, [[1, 0]]), places + 1)


def _add_spans(start_scores, end_scores, max_answer_length):
    """float32 (N, L, K), the scores of spans that begin at each token, of 1 to K tokens."""
    import tensorflow as tf

    padded = tf.pad(end_scores, [[0, 0], [0, max_answer_length - 1]], constant_values=-float("inf"))
    places = tf.range(tf.shape(start_scores)[1])[:, None] + tf.range(max_answer_length)
    return start_scores[:, :, None] + tf.gather(padded, places, axis=1)


def _find_best(spans, tokens, row_ids, num_rows):
    """The best span of each row. Of equal spans it is the first one.

    Returns:
        (its score, float32 (B,); its first and last token, int32 (B,), as in `tokens`).
    """
    import tensorflow as tf

    num_windows, max_answer_length = tf.shape(spans)[0], tf.shape(spans)[2]
    flat = tf.reshape(spans, [num_windows, tf.shape(spans)[1] * max_answer_length])
    of_window = tf.reduce_max(flat, axis=1)
    best = tf.math.unsorted_segment_max(of_window, row_ids, num_rows)
    # The segment maximum of a row without a token is the lowest finite number.
    best = tf.where(best > of_window.dtype.min, best, -float("inf"))
    window = tf.where(of_window == tf.gather(best, row_ids), tf.range(num_windows), num_windows - 1)
    window = tf.math.unsorted_segment_min(window, row_ids, num_rows)
    place = tf.argmax(tf.gather(flat, window), axis=1, output_type=tf.int32)
    first = place // max_answer_length
    last = tf.minimum(first + place % max_answer_length, tf.shape(tokens)[1] - 1)
    return best, *(tf.gather_nd(tokens, tf.stack([window, p], axis=1)) for p in (first, last))
