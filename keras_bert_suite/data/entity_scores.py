"""Scores entities: precision, recall and F1, as seqeval counts them."""

import collections

from keras_bert_suite.data.tag_schemes import find_entities


def score_entities(true_tags, predicted_tags):
    """Scores predicted tags by the entities that they stand for.

    An entity counts as found if its type, its first and its last word are right.

    Args:
        true_tags, predicted_tags: for each sentence a list of str, one for each word. The schemes
            may differ.

    Returns:
        dict of `precision`, `recall` and `f1` over all entities (micro); `entities`, the number of
        true entities; and `types`, a dict of type -> dict of these four.

    Raises:
        ValueError: if the numbers of sentences differ, or the numbers of words of a sentence.
    """
    if len(true_tags) != len(predicted_tags):
        raise ValueError(
            f"Wanted the tags of the same sentences, got {len(true_tags)} and "
            f"{len(predicted_tags)} sentences."
        )
    true, predicted, found = (collections.Counter() for _ in range(3))
    for row, (wanted, got) in enumerate(zip(true_tags, predicted_tags, strict=True)):
        if len(wanted) != len(got):
            raise ValueError(
                f"Row {row} has {len(wanted)} true tags and {len(got)} predicted tags. Wanted one "
                "of each for every word."
            )
        wanted, got = set(find_entities(wanted)), set(find_entities(got))
        for counter, entities in ((true, wanted), (predicted, got), (found, wanted & got)):
            counter.update(kind for kind, _, _ in entities)
    kinds = sorted({*true, *predicted})
    return {
        **_score(found.total(), predicted.total(), true.total()),
        "types": {kind: _score(found[kind], predicted[kind], true[kind]) for kind in kinds},
    }


def _score(found, predicted, true):
    return {
        "precision": found / max(predicted, 1),
        "recall": found / max(true, 1),
        "f1": 2 * found / max(predicted + true, 1),
        "entities": true,
    }
