"""The labels of texts, from the logits of the entailment of each label."""

import numpy as np

from keras_bert_suite.data.text_lists import find_texts
from keras_bert_suite.heads.base.answers import ClassAnswers, LabelSetAnswers
from keras_bert_suite.heads.choices.answers import drop_absent


class EntailedClasses(ClassAnswers):
    """One of the labels of each text, from logits or probabilities (N, K).

    `decode` gives the probabilities: float32 (N, K), or a list of N arrays (K,) if rows have
    different numbers of labels.
    """

    exported = {"probabilities": ("choices",)}
    are_of_fixed_labels = False

    def decode(self, outputs, rows):
        found = drop_absent(outputs, rows)
        if isinstance(found, list):
            return [self.find_probabilities(row).astype("float32") for row in found]
        if not len(found):  # Without rows, the outputs do not say how many labels there are.
            return np.zeros((0, found.shape[1] or len(self._list_columns(rows))), "float32")
        return self.find_probabilities(found).astype("float32")

    decode_probabilities = decode

    def name(self, outputs, rows):
        """list of N str, the label of each row; for sets list of N lists of str."""
        names = self._list_names(rows, len(outputs))
        found = drop_absent(outputs, rows)
        chosen = [self.choose(np.asarray(row)[None])[0] for row in found]
        return [self.pick(*pair) for pair in zip(names, chosen, strict=True)]

    @staticmethod
    def pick(names, chosen):
        """The answer for a row: `chosen` is what `choose` gives for it."""
        return names[chosen]

    def score(self, outputs, rows, labels):
        return super().score(drop_absent(outputs, rows), rows, labels)

    def name_served(self, xp, served):
        """Token ids do not say the labels. `ServedEntailments` knows them."""
        return served

    @staticmethod
    def _list_columns(rows):
        """The columns of labels: all first labels, all second labels and so on."""
        return () if rows.is_packed else rows.inputs[1:]

    def _list_names(self, rows, number):
        """The labels of each row."""
        if rows.is_packed:
            return [self.labels.names] * number
        columns = self._list_columns(rows)
        lists = zip(*columns, strict=True)
        counts = find_texts(columns).sum(axis=0)
        return [row[:count] for row, count in zip(lists, counts, strict=True)]


class EntailedSets(EntailedClasses, LabelSetAnswers):
    """Any number of the labels of each text: those that are more likely than not."""

    def __init__(self, labels, are_logits=True):
        super().__init__(labels, are_logits, [0.5])  # Rows may have any number of labels.

    @staticmethod
    def pick(names, chosen):
        return [names[place] for place in np.flatnonzero(chosen)]
