"""The answers that a `QuestionAnswerer` finds in a context."""

import dataclasses

import numpy as np

from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.averages import LOGITS
from keras_bert_suite.heads.questions.scores import find_threshold
from keras_bert_suite.preprocessing.packing import NUMPY

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
class _Candidates:
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

    def make_answer(self, number):
        context = self.context
        start, end = int(context.starts[self.firsts[number]]), int(context.ends[self.lasts[number]])
        score = float(np.exp(self.scores[number] - self.total))
        return Answer(context.text[start:end], start, end, score, self.null_odds)

    def make_null(self):
        score = float(np.exp(self.null_score - self.total)) if np.isfinite(self.total) else 0.0
        return Answer("", -1, -1, score, self.null_odds)


class QuestionAnswers(RowAnswers):
    """The best answer to each question, from scores (2, L) of the tokens of each window.

    The data know the task's `no_answer_threshold`. `max_answer_length` counts tokens.
    """

    exported = {"start_logits": ("length",), "end_logits": ("length",)}
    mean_forms = (LOGITS,)  # Scores of several windows are compared, and their shares are not.
    stand_at_tokens = True

    @staticmethod
    def read_exported(*ends):
        return np.stack(ends, axis=1)

    def __init__(self, data, max_answer_length):
        self.data = data
        self.max_answer_length = max_answer_length

    def decode(self, outputs, rows):
        """list of `Answer` to B questions; the scores themselves for packed arrays.

        The outputs are N arrays (2, L), for each token of a window the score of being the first
        token of the answer, and of being the last one. In a context without a token is no answer.
        """
        return outputs if rows.is_packed else self._choose(outputs, rows, self.threshold)

    def rank(self, outputs, rows, n_best):
        """B lists of at most `n_best` `Answer`; the scores themselves for packed arrays.

        Answers with the same text are listed only once. If there is a threshold, "no answer" is one
        of the ranked answers.
        """
        if rows.is_packed:
            return outputs
        has_null = self.threshold is not None
        ranked = []
        for candidates in _find_candidates(outputs, rows, self.max_answer_length, has_null):
            best = {}
            for number in np.argsort(-candidates.scores, kind="stable"):
                answer = candidates.make_answer(int(number))
                best.setdefault(answer.text, answer)
                if len(best) == n_best:
                    break
            if has_null or not best:
                best[""] = candidates.make_null()
            ranked.append(sorted(best.values(), key=lambda answer: -answer.score)[:n_best])
        return ranked

    def tune_threshold(self, outputs, rows, accepted, characters=False):
        """Sets the threshold with the highest F1, and returns it; see `find_threshold`."""
        answers = self._choose(outputs, rows, None)
        self.data.no_answer_threshold = find_threshold(
            accepted,
            [answer.text for answer in answers],
            [answer.null_odds for answer in answers],
            characters,
        )
        return self.threshold

    def serve(self, ops, outputs, packed):
        """The answers for tokens: `start_logits` and `end_logits`, float32 (B, L)."""
        return {"start_logits": outputs[:, 0], "end_logits": outputs[:, 1]}

    @property
    def threshold(self):
        """float or None, the `no_answer_threshold` of the data."""
        return self.data.no_answer_threshold

    def _choose(self, outputs, windows, threshold):
        """list of B `Answer`. Without a threshold every question has an answer."""
        answers = []
        has_null = threshold is not None
        for candidates in _find_candidates(outputs, windows, self.max_answer_length, has_null):
            is_null = has_null and candidates.null_odds > threshold
            if is_null or not len(candidates.scores):
                answers.append(candidates.make_null())
            else:
                answers.append(candidates.make_answer(int(candidates.scores.argmax())))
        return answers


def _find_candidates(outputs, windows, max_answer_length, has_null):
    """Yields the `_Candidates` of each context."""
    bounds = np.searchsorted(windows.sources, np.arange(len(windows.contexts) + 1))
    for row, context in enumerate(windows.contexts):
        scores, firsts, lasts, nulls = [np.zeros(0, "float32")], [], [], []
        for window in range(bounds[row], bounds[row + 1]):
            output = np.asarray(outputs[window], "float32")
            begin, summary = windows.find_positions(window, output.shape[1])
            nulls.append(output[0, summary] + output[1, summary])
            of_window = _score_candidates(
                output, begin, windows, window, context, max_answer_length
            )
            scores.append(of_window[0])
            firsts.append(of_window[1])
            lasts.append(of_window[2])
        scores = np.concatenate(scores)
        null_score = min(nulls)
        total = _log_sum(np.append(scores, null_score) if has_null else scores)
        yield _Candidates(
            context, scores, np.concatenate(firsts), np.concatenate(lasts), null_score, total
        )


def _log_sum(scores):
    """float, the logarithm of the sum of the exponentials of scores."""
    if not len(scores):
        return -np.inf
    highest = scores.max()
    return float(highest + np.log(np.exp(scores.astype("float64") - highest).sum()))


def _score_candidates(output, position, windows, window, context, max_answer_length):
    """(scores float32 (K,), first tokens (K,), last tokens (K,)) of the spans of a window.

    The window's first token has this position in its row. A span begins with a token for which the
    window answers, and ends in the window.
    """
    begin, length = windows.begins[window], len(windows.inputs[1][window])
    is_blank = context.is_blank[begin : begin + length]
    start, end = np.where(is_blank, -np.inf, output[:, position : position + length])
    own = slice(windows.own_starts[window], windows.own_ends[window])
    scores = score_spans(NUMPY, start[own], end[own.start :], max_answer_length)
    kept = np.nonzero(scores > -np.inf)
    first = begin + own.start + kept[0]
    return scores[kept].astype("float32"), first, first + kept[1]


def score_spans(xp, starts, ends, max_answer_length):
    """The scores of spans that begin at each token: (..., M) and (..., L) -> (..., M, K).

    A span has 1 to K = `max_answer_length` tokens. The scores of ends are counted from the first
    token that may begin a span. A span beyond the last end has -inf. `xp` is the namespace of array
    functions, see `preprocessing.packing`.
    """
    length = xp.shape(ends)[-1]
    last = xp.arange(xp.shape(starts)[-1])[:, None] + xp.arange(max_answer_length)
    at_end = xp.take(ends, xp.minimum(last, length - 1), axis=-1)
    return starts[..., None] + xp.where(last < length, at_end, -float("inf"))
