"""Rows of words whose labels form a chain, in which some labels cannot follow others."""

import numpy as np

from keras_bert_suite.data.tag_forms import OUTSIDE, split_tags
from keras_bert_suite.layers.heads.crf import NO_LABEL
from keras_bert_suite.tasks.data.labels import Tags
from keras_bert_suite.tasks.data.words import WordData


class ChainTags(Tags):
    """A label for each word, in the order that a scheme allows.

    Args:
        names: list of C str.
        scheme: str, the name of the scheme, or None.
        allowed: bool (C + 1, C + 1), whether the label of the column may follow the label of the
            row; the last row and column stand for the border of a row of words. None allows all.
        is_constrained: bool, whether no row may break the scheme. Otherwise half of the rows with
            entities may.
    """

    def __init__(self, names, scheme, allowed, is_constrained):
        super().__init__(names)
        self.scheme = scheme
        self.allowed = allowed
        self.is_constrained = is_constrained

    def encode(self, labels):
        """As for `Tags`.

        Raises:
            ValueError: also if too many rows break the scheme, naming the first of them.
        """
        encoded = super().encode(labels)
        if encoded.dtype != object:
            # Every negative label of a user means `NO_LABEL`. `CONTINUED` is only for windows.
            return np.maximum(encoded, NO_LABEL)
        if self.allowed is not None:
            self._check_scheme(encoded)
        return encoded

    def class_weighting(self, class_weight, loss):
        raise ValueError(
            "The loss of a CRF is that of a whole row, so class_weight must be None. Weight rows "
            "by `sample_weight`."
        )

    def _check_scheme(self, rows):
        allowed, border = np.array(self.allowed), len(self.names)
        split = split_tags(self.names)
        outside = [label for label, name in enumerate(self.names) if split[name][0] == OUTSIDE]
        wrong, with_entities = [], 0
        for number, row in enumerate(rows):
            with_entities += not np.isin(row, outside).all()
            chain = np.concatenate([[border], row, [border]])
            places = np.flatnonzero(~allowed[chain[:-1], chain[1:]])
            if len(row) and len(places):
                wrong.append((number, int(places[0]), chain))
        most = 0 if self.is_constrained else with_entities / 2
        if len(wrong) <= most:
            return
        number, word, chain = wrong[0]
        names = [*self.names, "the border of the row"]
        raise ValueError(
            f"In row {number}, word {word}, {names[chain[word + 1]]} follows {names[chain[word]]}, "
            f"which the scheme {self.scheme} forbids; so do {len(wrong)} of {with_entities} rows "
            "with entities. Convert the rows of tags by "
            f"keras_bert_suite.data.tag_schemes.convert_tags(rows, {self.scheme!r}), or build the "
            "task with scheme=None."
        )


class ChainData(WordData):
    """Rows of words, whose labels are a chain. A row has one loss, and so one weight."""

    def weigh(self, labels, weights):
        if weights is not None and np.ndim(weights) != 1:
            raise ValueError(
                "The loss of a CRF is that of a whole row. Wanted a weight for each row, got "
                f"weights of shape {np.shape(weights)}."
            )
        return labels, weights
