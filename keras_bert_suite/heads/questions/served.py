"""The answers to questions in the graph of a SavedModel: the best span of each context."""

import dataclasses
from typing import Any

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.served_texts import (
    count_characters,
    cut_texts,
    make_segment,
    run_in_batches,
)
from keras_bert_suite.heads.questions.answers import NO_SPAN_ODDS, score_spans
from keras_bert_suite.heads.questions.windows import find_room
from keras_bert_suite.preprocessing.packing import tensorflow_namespace
from keras_bert_suite.preprocessing.windows import share_strided_windows, slide_windows
from keras_bert_suite.tokenizers.engines import drop_invalid


@dataclasses.dataclass(frozen=True)
class WindowSpans:
    """The facts of N windows for the answer to a question, as tensors.

    Attributes:
        nulls: float32 (N,), the score of "no answer".
        best: float32 (N,), the score of the best span; -inf if the window has no span.
        first, last: int32 (N,), the first and the last token of the best span, among the tokens of
            all contexts.
        total: float32 (N,), the sum of the exponentials of the scores of all spans, each less
            `best`.
    """

    nulls: Any
    best: Any
    first: Any
    last: Any
    total: Any


class ServedSpans(ServedTask):
    """A `QuestionAnswerer`: the answers for texts are the spans of its `predict`."""

    def answer_texts(self, texts):
        """The answers to questions in contexts, string tensors (B,); see `make_signatures`."""
        import tensorflow as tf

        task, questions, contexts = self.task, texts[0], drop_invalid(texts[1])
        ids, starts, ends, _ = task.preprocessor.tokenizer.tokenize_with_offsets(contexts)
        starts, ends = (tf.cast(places.flat_values, tf.int32) for places in (starts, ends))
        is_blank = _find_blank(task, contexts, ids, starts, ends)
        row_ids, windows = self._score_windows(questions, ids, is_blank)
        num_rows = tf.size(contexts)
        nulls = tf.math.unsorted_segment_min(windows.nulls, row_ids, num_rows)
        best, window = _find_best(windows.best, row_ids, num_rows)
        first, last = tf.gather(windows.first, window), tf.gather(windows.last, window)
        is_null = ~tf.math.is_finite(best)
        null_odds = tf.where(is_null, NO_SPAN_ODDS, nulls - best)
        highest = best
        if task.no_answer_threshold is not None:
            is_null |= null_odds > task.no_answer_threshold
            highest = tf.maximum(best, nulls)
        # The probability of the best span, or of no answer, among all of them.
        highest = tf.where(tf.math.is_finite(highest), highest, 0.0)
        totals = windows.total * tf.exp(windows.best - tf.gather(highest, row_ids))
        total = tf.math.unsorted_segment_sum(totals, row_ids, num_rows)
        chosen = best
        if task.no_answer_threshold is not None:
            total += tf.exp(nulls - highest)
            chosen = tf.where(is_null, nulls, best)

        start, end = _take(starts, first), _take(ends, last)
        places = {
            "starts": count_characters(contexts, tf.range(num_rows), start),
            "ends": count_characters(contexts, tf.range(num_rows), end),
            "byte_starts": start,
            "byte_ends": end,
        }
        return {
            "answers": tf.where(is_null, "", tf.strings.substr(contexts, start, end - start)),
            **{name: tf.where(is_null, -1, place) for name, place in places.items()},
            "scores": tf.math.divide_no_nan(tf.exp(chosen - highest), total),
            "null_odds": null_odds,
        }

    def _score_windows(self, questions, ids, is_blank):
        """Runs the model on the windows of contexts: their rows, int32 (N,), and `WindowSpans`.

        `ids` are the tokens of the contexts, ragged int32 (B, None). With `is_blank` tokens, bool
        (T,), no answer begins or ends.
        """
        import tensorflow as tf

        xp, task, packer = tensorflow_namespace(), self.task, self.data.packer
        stride, query_length, budget = find_room(packer, task.data.stride, task.data.query_length)

        question, context = make_segment(packer.tokenizer.tokenize(questions)), make_segment(ids)
        (question, window), row_ids = slide_windows(
            xp, [question, context], budget, stride, query_length
        )
        _, window_starts, lengths = window
        begins = window_starts - tf.gather(context[1], row_ids)
        own_starts, own_ends = share_strided_windows(xp, begins, lengths, row_ids)
        template = packer.row_template

        def run(begin, end):
            part = slice(begin, end)
            window_ids, *where = window
            where = [column[part] for column in where]
            query = (question[0], question[1][part], question[2][part])
            packed = packer.pack_tokens(window_ids, *where, queries=[query])
            scores = task(task.data.encoder.select(packed), training=False)
            tokens = packed["token_indices"]
            place = tokens - where[0][:, None]
            is_own = (place >= own_starts[part][:, None]) & (place < own_ends[part][:, None])
            summary = template.find_summary([query[2], where[1]])
            summary += template.find_origin(tf.shape(tokens)[1]) + tf.zeros_like(where[1])
            nulls = tf.gather(tf.reduce_sum(scores, axis=1), summary, axis=1, batch_dims=1)
            is_token = (tokens >= 0) & ~_take(is_blank, tokens)
            spans = score_spans(
                xp,
                tf.where(is_own & is_token, scores[:, 0], -float("inf")),
                tf.where(is_token, scores[:, 1], -float("inf")),
                task.answers.max_answer_length,
            )
            return [nulls, *_sum_up(spans, tokens)]

        return row_ids, WindowSpans(*run_in_batches(run, question[2] + lengths))


def _find_blank(task, contexts, ids, starts, ends):
    """bool (T,), the tokens of white space, with which no answer begins or ends."""
    import tensorflow as tf

    blank_words = task.preprocessor.tokenizer.blank_words
    if blank_words is None:
        return tf.zeros_like(starts, tf.bool)
    texts = cut_texts(contexts, tf.cast(ids.value_rowids(), tf.int32), starts, ends)
    return tf.strings.regex_full_match(texts, blank_words)


def _take(values, places):
    """The values at positions. Position -1 has the value 0, or False, even without any value."""
    import tensorflow as tf

    return tf.gather(tf.pad(values, [[1, 0]]), places + 1)


def _sum_up(spans, tokens):
    """The last four columns of `WindowSpans`, of spans (N, L, K) over tokens (N, L)."""
    import tensorflow as tf

    num_windows, max_answer_length = tf.shape(spans)[0], tf.shape(spans)[2]
    flat = tf.reshape(spans, [num_windows, tf.shape(spans)[1] * max_answer_length])
    best = tf.reduce_max(flat, axis=1)
    # Of equal spans the first one is the best.
    place = tf.argmax(flat, axis=1, output_type=tf.int32)
    first = place // max_answer_length
    last = tf.minimum(first + place % max_answer_length, tf.shape(tokens)[1] - 1)
    reference = tf.where(tf.math.is_finite(best), best, 0.0)
    total = tf.reduce_sum(tf.exp(flat - reference[:, None]), axis=1)
    return best, *(tf.gather(tokens, place, batch_dims=1) for place in (first, last)), total


def _find_best(best_of_windows, row_ids, num_rows):
    """The score of the best span of each row, float32 (B,), and its window, int32 (B,).

    Of equal spans it is the first one.
    """
    import tensorflow as tf

    num_windows = tf.size(row_ids)
    best = tf.math.unsorted_segment_max(best_of_windows, row_ids, num_rows)
    # The segment maximum of a row without a token is the lowest finite number.
    best = tf.where(best > best.dtype.min, best, -float("inf"))
    is_best = best_of_windows == tf.gather(best, row_ids)
    window = tf.where(is_best, tf.range(num_windows), num_windows - 1)
    return best, tf.math.unsorted_segment_min(window, row_ids, num_rows)
