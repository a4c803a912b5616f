"""Scores relations between entities as SemEval 2010 task 8 does. This module needs only NumPy."""

import re

import numpy as np

from keras_bert_suite.data.score_counts import check_scored, score_counts

#: A label of a relation with a direction, such as "Cause-Effect(e2,e1)".
_DIRECTED = re.compile(r"(.+)\((?:e1,e2|e2,e1)\)")


def score_relations(label_ids, predicted_ids, label_names, other="Other"):
    """Scores predicted relations by the official rule of SemEval 2010 task 8.

    "Cause-Effect(e1,e2)" and "Cause-Effect(e2,e1)" are one relation. A prediction with the wrong
    direction counts among the predictions of the relation, and is not right. The label `other`
    counts as no relation. So do predicted relations that no row has.

    Args:
        label_ids, predicted_ids: int (N,), the true and the predicted labels of the rows.
        label_names: list of C names.
        other: str, the label of rows without a relation. A list without it has none.

    Returns:
        dict of `accuracy`, over all labels; `macro_f1`, the mean of the F1 of the relations, which
        is the official score; `micro_f1`, `micro_precision` and `micro_recall`, over the rows of
        all relations; and `relations`, dict of a relation -> dict of `precision`, `recall`, `f1`
        and `rows`.

    Source: Hendrickx et al., 2010 (https://aclanthology.org/S10-1006), section 4, and its
    semeval2010_task8_scorer-v1.2.pl, "(9+1)-way evaluation taking directionality into account".
    """
    check_scored(label_ids)
    label_ids, predicted_ids = np.asarray(label_ids), np.asarray(predicted_ids)
    relation_of = [_name_relation(name) for name in label_names]
    relations = [name for name in dict.fromkeys(relation_of) if name != other]
    ids = np.array([relations.index(name) if name != other else -1 for name in relation_of])
    wanted, predicted = ids[label_ids], ids[predicted_ids]
    is_right = label_ids == predicted_ids
    counts = {}
    for i, name in enumerate(relations):
        if (wanted == i).any():
            found = np.sum(is_right & (wanted == i))
            counts[name] = (found, np.sum(predicted == i), np.sum(wanted == i))
    each = {name: {**score_counts(*count), "rows": int(count[2])} for name, count in counts.items()}
    micro = score_counts(*np.sum([*counts.values(), (0, 0, 0)], axis=0))
    return {
        "accuracy": float(np.mean(is_right)),
        "macro_f1": float(np.mean([scores["f1"] for scores in each.values()] or [0.0])),
        **{f"micro_{name}": micro[name] for name in ("f1", "precision", "recall")},
        "relations": each,
    }


def _name_relation(label):
    found = _DIRECTED.fullmatch(label)
    return found[1] if found else label
