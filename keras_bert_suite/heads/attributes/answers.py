"""A class of each of several attributes for each row."""

import dataclasses

import numpy as np

from keras_bert_suite.data.score_counts import check_scored
from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.label_scores import score_classes
from keras_bert_suite.heads.base.probabilities import softmax
from keras_bert_suite.heads.base.wrong_answers import find_wrong_classes
from keras_bert_suite.training.losses import split_attributes


class AttributeAnswers(RowAnswers):
    """Classes of attributes, from logits or probabilities (N, C), one attribute after the other.

    Args:
        labels: `AttributeLabels`.
        are_logits: bool, whether outputs are logits, and not probabilities.
    """

    def __init__(self, labels, are_logits=True):
        self.labels = labels
        self.are_logits = are_logits

    def split(self, outputs):
        """dict of the name of an attribute -> its part (N, its labels) of outputs (N, C)."""
        sizes = [len(labels) for labels in self.labels.attributes.values()]
        return dict(zip(self.labels.attributes, split_attributes(outputs, sizes), strict=True))

    def decode(self, outputs, rows):
        """dict of the name of an attribute -> float32 (N, its labels)."""
        return self.split(outputs)

    def decode_probabilities(self, outputs, rows):
        """dict of the name of an attribute -> float32 (N, its labels), probabilities."""
        parts = self.split(outputs)
        return {n: softmax(part) for n, part in parts.items()} if self.are_logits else parts

    def choose(self, outputs, xp=np):
        """dict of the name of an attribute -> int (N,), the class that is the answer.

        `xp` is as for `ClassAnswers.choose`.
        """
        return {name: xp.argmax(part, axis=-1) for name, part in self.split(outputs).items()}

    def name(self, outputs, rows):
        """dict of the name of an attribute -> list of N str."""
        chosen = self.choose(outputs).items()
        return {name: [self.labels.attributes[name][i] for i in ids] for name, ids in chosen}

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
