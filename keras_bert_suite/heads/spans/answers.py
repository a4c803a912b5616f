"""Entities as spans, from scores of pairs of tokens."""

import numpy as np

from keras_bert_suite.heads.base import averages
from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.spans.windows import align_spans, join_span_windows
from keras_bert_suite.heads.tags.entities import make_entity
from keras_bert_suite.heads.tags.scores import score_spans


class EntitySpanAnswers(RowAnswers):
    """The spans with a score above 0, from scores (C, L, L) of each window."""

    exported = {"scores": ("labels", "length", "length")}
    mean_forms = (averages.PROBABILITIES, averages.LOGITS)
    label_axis = -3
    stand_at_tokens = True

    def __init__(self, labels):
        self.labels = labels

    def to_probabilities(self, logits, xp):
        return averages.sigmoid(xp, logits)

    def to_logits(self, probabilities, xp):
        return averages.find_log_odds(xp, probabilities)

    def decode(self, outputs, rows):
        """list with a list of `Entity` for each row; the scores themselves for packed arrays.

        `outputs` are the scores of windows, or the result of `condense`.
        """
        if rows.is_packed:
            return outputs
        found = [
            find_entity_spans(window, rows.template) if window.ndim == 3 else window
            for window in outputs
        ]
        words, characters = rows.tokenized.words, rows.tokenized.characters
        return [
            [
                make_entity(
                    rows.texts[number],
                    words[number],
                    characters[number],
                    self.labels.names[int(kind)],
                    int(first),
                    int(last) + 1,
                    float(1 / (1 + np.exp(-score))),
                )
                for first, last, kind, score in spans
            ]
            for number, spans in enumerate(join_span_windows(found, rows))
        ]

    def score(self, outputs, rows, labels):
        """dict of scores against the encoded labels of rows; see `score_spans`.

        A span of a text is scored as `fit` learns it: from the first character to the last of the
        words that it touches. In a row of words, an entity ends at its first and last word that has
        a token.
        """
        if rows.is_packed:
            raise ValueError("Packed arrays have no words. Pass lists of words, or texts.")
        names = self.labels.names
        wanted = [
            [(start, end, names[kind]) for start, end, kind in spans]
            for spans in align_spans(rows, labels)
        ]
        found = [
            [(entity.start, entity.end, entity.label) for entity in row]
            for row in self.decode(outputs, rows)
        ]
        return score_spans(wanted, found)

    def condense(self, outputs, rows):
        """list of B arrays, the spans of a batch of windows. All scores would take the memory."""
        if rows.is_packed:
            return outputs
        return [find_entity_spans(scores, rows.template) for scores in outputs]

    def serve(self, ops, outputs, packed):
        """The answers for tokens: `scores` float32 (B, C, L, L)."""
        return {"scores": outputs}


def find_entity_spans(scores, template):
    """The spans with a score above 0, of scores (C, L, L).

    It returns float64 (M, 4): the positions of the two tokens, counted from the origin of the row,
    the label id and the score. `template` is the `RowTemplate`.
    """
    kind, first, last = np.nonzero(scores > 0)
    origin, scores = template.find_origin(scores.shape[-1]), scores[kind, first, last]
    return np.stack([first - origin, last - origin, kind, scores], axis=-1).astype("float64")
