"""The answers that a `QuestionAnswerer` finds in a context."""

import dataclasses

import numpy as np

from keras_bert_suite.tasks.answers.rows import RowAnswers

#: The `null_odds` of a context without a span, as in Google's run_squad.py. JSON has no infinity.
NO_SPAN_ODDS = 1e6


@dataclasses.dataclass(frozen=True)
class Answer:
    """A part of a context, or no answer.

    Attributes:
        text: str, `context[start:end]`; "" for no answer.
        start, end: int, the position in the context, in characters (code points, as Python counts);
            -1 for no answer.
        score: float, the probability of this span among all candidates: the spans of the context
            that are not too long and, if the task has a `no_answer_threshold`, "no answer".
        null_odds: float, the score of "no answer" minus the score of the best span of the context,
            as a difference of logits. It is compared with `no_answer_threshold`. It is 1e6 if the
            context has no span, as an empty context.
    """

    text: str
    start: int
    end: int
    score: float
    null_odds: float


@dataclasses.dataclass(frozen=True)
class _Spans:
    """The spans of a context that may be the answer, in their order.

    Attributes:
        context: `ContextTokens`.
        scores: float32 (K,), the sum of the two logits of each span.
        firsts, lasts: int64 (K,), the first and the last token of each span.
        null_score: float, the score of "no answer".
        total: float, the logarithm of the sum of the exponentials of all scores.
    """

    context: object
    scores: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    null_score: float
    total: float

    @property
    def null_odds(self):
        return float(self.null_score - self.scores.max()) if len(self.scores) else NO_SPAN_ODDS

    def make_answer(self, place):
        context = self.context
        start, end = int(context.starts[self.firsts[place]]), int(context.ends[self.lasts[place]])
        score = float(np.exp(self.scores[place] - self.total))
        return Answer(context.text[start:end], start, end, score, self.null_odds)

    def make_null(self):
        score = float(np.exp(self.null_score - self.total)) if np.isfinite(self.total) else 0.0
        return Answer("", -1, -1, score, self.null_odds)


class QuestionAnswers(RowAnswers):
    """The best answer to each question, from scores (2, L) of the tokens of each window.

    Args:
        max_answer_length: int, the maximum number of tokens of an answer.
        no_answer_threshold: float, the `null_odds` above which a question has no answer; None if
            every question has an answer.
    """

    def __init__(self, max_answer_length=30, no_answer_threshold=None):
        self.max_answer_length = max_answer_length
        self.no_answer_threshold = no_answer_threshold

    def decode(self, outputs, rows):
        """list of `Answer`; the scores themselves for packed arrays."""
        if rows.is_packed:
            return outputs
        return choose_answers(outputs, rows, self.max_answer_length, self.no_answer_threshold)

    def rank(self, outputs, rows, n_best):
        """list of lists of `Answer`, the best first; the scores themselves for packed arrays."""
        if rows.is_packed:
            return outputs
        return rank_answers(outputs, rows, self.max_answer_length, self.no_answer_threshold, n_best)

    def decode_spans(self, outputs, rows):
        """list of `Answer`, also to questions that may have none."""
        return choose_answers(outputs, rows, self.max_answer_length, None)

    def serve(self, ops, outputs, packed):
        """The answers for tokens: `start_logits` and `end_logits`, float32 (B, L)."""
        return {"start_logits": outputs[:, 0], "end_logits": outputs[:, 1]}


def choose_answers(outputs, windows, max_answer_length, threshold):
    """Chooses the best answer to each question.

    Args:
        outputs: list of N float arrays (2, L), for each token of a window the score of being the
            first token of the answer, and of being the last token.
        windows: `QuestionWindows` over B contexts.
        max_answer_length: int, the maximum number of tokens of an answer.
        threshold: float, the `null_odds` above which a question has no answer; None if every
            question has an answer.

    Returns:
        list of B `Answer`. In a context without a token there is no answer.
    """
    answers = []
    for spans in _find_spans(outputs, windows, max_answer_length, threshold is not None):
        if not len(spans.scores) or (threshold is not None and spans.null_odds > threshold):
            answers.append(spans.make_null())
        else:
            answers.append(spans.make_answer(int(spans.scores.argmax())))
    return answers


def rank_answers(outputs, windows, max_answer_length, threshold, n_best):
    """Ranks the best answers to each question. Answers with the same text are listed only once.

    Args:
        outputs, windows, max_answer_length, threshold: as for `choose_answers`. If there is a
            threshold, "no answer" is one of the ranked answers.
        n_best: int, how many answers are wanted.

    Returns:
        list of B lists of at most `n_best` `Answer`.
    """
    ranked = []
    for spans in _find_spans(outputs, windows, max_answer_length, threshold is not None):
        best = {}
        for place in np.argsort(-spans.scores, kind="stable"):
            answer = spans.make_answer(int(place))
            best.setdefault(answer.text, answer)
            if len(best) == n_best:
                break
        if threshold is not None or not best:
            best[""] = spans.make_null()
        ranked.append(sorted(best.values(), key=lambda answer: -answer.score)[:n_best])
    return ranked


def _find_spans(outputs, windows, max_answer_length, has_null):
    """Yields the `_Spans` of each context."""
    bounds = np.searchsorted(windows.sources, np.arange(len(windows.contexts) + 1))
    for row, context in enumerate(windows.contexts):
        scores, firsts, lasts, nulls = [np.zeros(0, "float32")], [], [], []
        for window in range(bounds[row], bounds[row + 1]):
            output = np.asarray(outputs[window], "float32")
            place, summary = windows.find_places(window, output.shape[1])
            nulls.append(output[0, summary] + output[1, summary])
            of_window = _score_spans(output, place, windows, window, context, max_answer_length)
            scores.append(of_window[0])
            firsts.append(of_window[1])
            lasts.append(of_window[2])
        scores = np.concatenate(scores)
        null_score = min(nulls)
        total = _log_sum(np.append(scores, null_score) if has_null else scores)
        yield _Spans(
            context, scores, np.concatenate(firsts), np.concatenate(lasts), null_score, total
        )


def _log_sum(scores):
    """float, the logarithm of the sum of the exponentials of scores."""
    if not len(scores):
        return -np.inf
    highest = scores.max()
    return float(highest + np.log(np.exp(scores.astype("float64") - highest).sum()))


def _score_spans(output, place, windows, window, context, max_answer_length):
    """(scores float32 (K,), first tokens (K,), last tokens (K,)) of the spans of a window.

    The window's first token has the position `place`. A span begins with a token for which the
    window answers, and ends in the window.
    """
    begin, length = windows.begins[window], len(windows.inputs[1][window])
    is_blank = context.is_blank[begin : begin + length]
    start, end = np.where(is_blank, -np.inf, output[:, place : place + length])
    first = np.arange(windows.own_starts[window], windows.own_ends[window])
    last = first[:, None] + np.arange(max_answer_length)
    beyond = last >= length
    scores = start[first][:, None] + np.where(beyond, -np.inf, end[np.where(beyond, 0, last)])
    kept = np.nonzero(scores > -np.inf)
    return scores[kept].astype("float32"), begin + first[kept[0]], begin + last[kept]
