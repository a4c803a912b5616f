"""Labels of words: a tag each, one by one or in the order of a scheme."""

import numpy as np

from keras_bert_suite.data.word_rows import read_tags
from keras_bert_suite.heads.base.class_weights import balance_classes, read_class_weights
from keras_bert_suite.heads.base.label_encoding import (
    check_token_labels,
    encode_tags,
    weigh_token_labels,
)
from keras_bert_suite.heads.base.labels import NamedLabels
from keras_bert_suite.heads.tags.tag_forms import OUTSIDE, split_tags, warn_of_strangers
from keras_bert_suite.layers.heads.crf import NO_LABEL


class Tags(NamedLabels):
    """A label for each word: a name or an id. Packed arrays have label ids (B, L).

    Args:
        names: as for `NamedLabels`. A tag in another form than most gives a warning.
    """

    output_kind = "classes"

    def __init__(self, names):
        super().__init__(names)
        warn_of_strangers(self.names, "label_names")

    def read(self, labels):
        return read_tags(labels)

    def encode(self, labels):
        """Object array (N,) of int32 arrays, or int32 (N, L) for packed arrays."""
        if labels.dtype == object:
            return encode_tags(labels, self.names)
        return check_token_labels(labels, self.names)

    def weigh(self, labels, weights):
        """Tokens with a negative label do not count. Weights may be (B, L), of tokens, too."""
        return weigh_token_labels(labels, weights)

    def class_weighting(self, class_weight, loss):
        weights = read_class_weights(class_weight, self.names)
        return lambda labels: weights[np.asarray(labels)]

    def balance(self, labels):
        """Each word counts, and for packed arrays each token with a label."""
        tags = np.concatenate([np.ravel(row) for row in labels])
        return balance_classes(tags[tags >= 0], self.names)


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

    def weigh(self, labels, weights):
        if weights is not None and np.ndim(weights) != 1:
            raise ValueError(
                "The loss of a CRF is that of a whole row. Wanted a weight for each row, got "
                f"weights of shape {np.shape(weights)}."
            )
        return labels, weights

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
            breaks = np.flatnonzero(~allowed[chain[:-1], chain[1:]])
            if len(row) and len(breaks):
                wrong.append((number, int(breaks[0]), chain))
        most = 0 if self.is_constrained else with_entities / 2
        if len(wrong) <= most:
            return
        number, word, chain = wrong[0]
        names = [*self.names, "the border of the row"]
        raise ValueError(
            f"In row {number}, word {word}, {names[chain[word + 1]]} follows {names[chain[word]]}, "
            f"which the scheme {self.scheme} forbids; so do {len(wrong)} of {with_entities} rows "
            "with entities. Convert the rows of tags by `convert_tags` of "
            f"keras_bert_suite.heads.tags.tag_schemes to {self.scheme!r}, or build the task with "
            "scheme=None."
        )
