"""Scores entities: precision, recall and F1, as seqeval counts them."""

import collections

from keras_bert_suite.data.score_counts import score_counts
from keras_bert_suite.heads.tags.tag_schemes import (
    find_entities,
    find_strict_entities,
    infer_scheme,
    parse_tags,
)

#: How tags that break the rules of their scheme are read: the values of `mode`.
MODES = ("lenient", "strict")


def score_entities(true_tags, predicted_tags, label_names=None, mode="lenient"):
    """Scores predicted tags by the entities that they stand for.

    An entity counts as found if its type, its first and its last word are right.

    Args:
        true_tags, predicted_tags: for each sentence a list of str, one for each word. The schemes
            may differ, and all tags have one form, see `tag_forms`.
        label_names: list of str, all tags that there may be. None takes the tags of the sentences.
        mode: "lenient" reads an I after O as the beginning of an entity, as conlleval and seqeval's
            default do; see `tag_schemes`. "strict" leaves out entities that break the rules of
            their scheme, as seqeval's mode="strict" does; see `find_strict_entities`.

    Returns:
        dict of `precision`, `recall` and `f1` over all entities (micro); `entities`, the number of
        true entities; and `types`, a dict of type -> dict of the same four numbers for this type.

    Raises:
        ValueError: if true and predicted tags have different numbers of sentences, or of words in
            a sentence; for another `mode`, or a strict one where the names of tags are of no
            scheme.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be 'lenient' or 'strict', got {mode!r}.")
    for row, (wanted, got) in enumerate(zip(true_tags, predicted_tags, strict=True)):
        if len(wanted) != len(got):
            raise ValueError(f"Row {row} has {len(wanted)} true tags and {len(got)} predicted.")
    if label_names is None:
        label_names = {tag for row in (*true_tags, *predicted_tags) for tag in row}
    parsed = parse_tags(label_names)

    scheme = infer_scheme(label_names) if mode == "strict" else None
    if mode == "strict" and scheme is None:
        raise ValueError(
            f"mode='strict' needs tags of BIO, BIOES or BMES, got {', '.join(label_names)[:80]}. "
            "Pass mode='lenient'."
        )

    def read_spans(tags):
        if scheme is None:
            found = find_entities(tags, parsed)
        else:
            found = find_strict_entities(tags, parsed, scheme)
        return [(first, end, kind) for kind, first, end in found]

    return score_spans(map(read_spans, true_tags), map(read_spans, predicted_tags))


def score_spans(true_spans, predicted_spans):
    """Scores predicted spans as `score_entities`: for each row an iterable of `(start, end, type)`.

    A span counts as found if its type, its start and its end are right.
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
