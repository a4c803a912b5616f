"""A class of each of several attributes for each row."""

import dataclasses

import numpy as np

from keras_bert_suite.data.score_counts import check_scored
from keras_bert_suite.heads.base.answers import ClassAnswers, DictAnswers, RowAnswers
from keras_bert_suite.heads.base.averages import LOGITS, PROBABILITIES
from keras_bert_suite.heads.base.label_scores import score_classes
from keras_bert_suite.heads.base.probabilities import softmax
from keras_bert_suite.heads.base.wrong_answers import find_wrong_classes
from keras_bert_suite.training.losses import split_attributes


class AttributeAnswers(DictAnswers):
    """Classes of attributes, from logits or probabilities (N, C), one attribute after the other.

    Args:
        labels: `AttributeLabels`.
        are_logits: bool, whether outputs are logits, and not probabilities.
    """

    exported = {"probabilities": ("labels",)}
    mean_forms = (PROBABILITIES, LOGITS)
    read_exported = staticmethod(RowAnswers.read_exported)

    def __init__(self, labels, are_logits=True):
        super().__init__({n: ClassAnswers(part, are_logits) for n, part in labels.parts.items()})
        self.labels = labels
        self.are_logits = are_logits

    def split(self, outputs):
        """dict of the name of an attribute -> its part (N, its labels) of outputs (N, C)."""
        sizes = [len(part.names) for part in self.labels.parts.values()]
        return dict(zip(self.parts, split_attributes(outputs, sizes), strict=True))

    def to_probabilities(self, logits, xp):
        """The softmax of the part of each attribute."""
        parts = self.split(logits).values()
        return xp.concatenate([softmax(part, xp) for part in parts], axis=-1)

    def decode_probabilities(self, outputs, rows):
        """dict of the name of an attribute -> float32 (N, its labels), probabilities."""
        parts = self.split(outputs)
        return {n: softmax(part) for n, part in parts.items()} if self.are_logits else parts

    def score(self, outputs, rows, labels):
        """dict of scores; see `AttributeClassifier.score`."""
        each, right, number = {}, 0, 0
        for ids, (name, chosen) in zip(labels.T, self.choose(outputs).items(), strict=True):
            known = ids >= 0
            if not known.any():
                continue
            predicted = chosen[known]
            scores = score_classes(ids[known], predicted, self.labels.attributes[name])
            each[name] = {
                **{figure: scores[figure] for figure in ("accuracy", "macro_f1")},
                "rows": int(known.sum()),
            }
            right, number = right + np.sum(predicted == ids[known]), number + known.sum()
        check_scored(each)
        return {
            "accuracy": float(right / number),
            "macro_f1": float(np.mean([part["macro_f1"] for part in each.values()])),
            "attributes": each,
        }

    def inspect(self, outputs, rows, labels):
        """list of `WrongAnswer` without texts, one for each wrong attribute of a row."""
        wrong, chosen = [], self.choose(outputs)
        parts = self.decode_probabilities(outputs, rows).items()
        for ids, (attribute, part) in zip(labels.T, parts, strict=True):
            known = np.flatnonzero(ids >= 0)
            names = [f"{attribute}={label}" for label in self.labels.attributes[attribute]]
            found = find_wrong_classes(part[known], ids[known], names, chosen[attribute][known])
            wrong += [dataclasses.replace(w, row=int(known[w.row])) for w in found]
        return wrong

    def serve(self, ops, outputs, packed):
        """`probabilities` float32 (B, C), one attribute after the other."""
        if not self.are_logits:
            return {"probabilities": outputs}
        parts = [ops.softmax(part, axis=-1) for part in self.split(outputs).values()]
        return {"probabilities": ops.concatenate(parts, axis=-1)}

    def name_served(self, xp, served):
        """Of each attribute: its name, string (B,), and `NAME_probabilities`, float32 (B, C)."""
        named = {}
        for name, part in self.split(served["probabilities"]).items():
            named[name] = xp.take(xp.asarray(self.labels.attributes[name]), xp.argmax(part))
            named[f"{name}_probabilities"] = part
        return named
