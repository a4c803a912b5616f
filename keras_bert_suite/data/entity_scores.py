"""Scores entities: precision, recall and F1, as seqeval counts them."""

import collections

from keras_bert_suite.data.score_counts import score_counts
from keras_bert_suite.data.span_labels import tags_to_spans


def score_entities(true_tags, predicted_tags):
    """Scores predicted tags by the entities that they stand for.

    An entity counts as found if its type, its first and its last word are right.

    Args:
        true_tags, predicted_tags: for each sentence a list of str, one for each word. The schemes
            may differ.

    Returns:
        dict of `precision`, `recall` and `f1` over all entities (micro); `entities`, the number of
        true entities; and `types`, a dict of type -> dict of the same four numbers for this type.

    Raises:
        ValueError: if true and predicted tags have different numbers of sentences, or of words in
            a sentence.
    """
    for row, (wanted, got) in enumerate(zip(true_tags, predicted_tags, strict=True)):
        if len(wanted) != len(got):
            raise ValueError(f"Row {row} has {len(wanted)} true tags and {len(got)} predicted.")
    return score_spans(map(tags_to_spans, true_tags), map(tags_to_spans, predicted_tags))


def score_spans(true_spans, predicted_spans):
    """Scores predicted spans. A span counts as found if its type, its start and its end are right.

    Args:
        true_spans, predicted_spans: for each row an iterable of `(start, end, type)`.

    Returns:
        dict, as from `score_entities`.
    """
    true, predicted, found = (collections.Counter() for _ in range(3))
    for wanted, got in zip(true_spans, predicted_spans, strict=True):
        wanted, got = set(wanted), set(got)
        for counter, spans in ((true, wanted), (predicted, got), (found, wanted & got)):
            counter.update(kind for _, _, kind in spans)
    kinds = sorted({*true, *predicted})
    return {
        **_score(found.total(), predicted.total(), true.total()),
        "types": {kind: _score(found[kind], predicted[kind], true[kind]) for kind in kinds},
    }


def _score(found, predicted, true):
    return {**score_counts(found, predicted, true), "entities": true}
