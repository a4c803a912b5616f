"""Labels of rows: how users write them, and how a loss takes them."""

import numpy as np

from keras_bert_suite.data.class_weights import read_class_weights, weight_rows
from keras_bert_suite.data.label_encoding import (
    check_token_labels,
    encode_labels,
    encode_tags,
    order_label_columns,
    weigh_token_labels,
)
from keras_bert_suite.data.label_sets import (
    encode_label_sets,
    read_batch_of_label_sets,
    read_label_sets,
)
from keras_bert_suite.data.span_labels import check_span_arrays, encode_spans
from keras_bert_suite.data.tag_forms import OUTSIDE, split_tags, warn_of_strangers
from keras_bert_suite.data.targets import encode_targets
from keras_bert_suite.layers.heads.crf import NO_LABEL
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


class Labels:
    """Labels that a loss takes as a user writes them. The base of the other kinds."""

    #: The kind of the outputs that belong to them, as losses and metrics of Keras see them; see
    #: `OutputForm`. Of "others" they get the labels and the outputs as they are.
    output_kind = "others"

    #: Whether `fit` and `evaluate` need labels.
    are_needed = True

    #: Whether the labels of two batches differ only in the number of rows. Metrics of Keras such as
    #: F1Score ask for the number of labels.
    have_fixed_shape = False

    def read(self, labels):
        """Reads the labels of rows in memory as a column, or None."""
        return labels

    def read_batch(self, labels):
        """Reads the labels of a batch of a dataset as a column, or None."""
        return labels

    def encode(self, labels):
        """Turns a column of labels into labels for the loss, and checks them."""
        return labels

    def weigh(self, labels, weights):
        """The labels and weights of a packed batch, as the loss takes them.

        Args:
            labels: encoded labels.
            weights: float (B,), weights of rows, or None; as the user passed them.
        """
        return labels, weights

    def class_weighting(self, class_weight, loss):
        """The function from encoded labels to sample weights.

        Args:
            class_weight: dict of label or class id -> weight.
            loss: the compiled loss.

        Raises:
            ValueError: if a key is no label; if the labels have no classes; or if the loss does not
                keep the losses of single labels.
        """
        raise ValueError("This task has no classes, so class_weight must be None.")


class ClassIds(Labels):
    """Ids of classes without names, such as tokens, or places among candidates."""

    output_kind = "classes"


class NoLabels(ClassIds):
    """For data that makes its labels itself, such as masked texts."""

    are_needed = False


class NamedLabels(Labels):
    """The base of labels with names.

    Args:
        names: list of C str.
    """

    def __init__(self, names):
        self.names = list(names)

    def read(self, labels):
        return order_label_columns(labels, self.names)

    def read_batch(self, labels):
        return order_label_columns(labels, self.names)


class Classes(NamedLabels):
    """One class for each row: a name, a class id, or one-hot or soft labels (N, C)."""

    output_kind = "classes"
    have_fixed_shape = True

    def encode(self, labels):
        """int32 (N,), or float32 (N, C) for a matrix; see `encode_labels`."""
        return encode_labels(labels, self.names)

    def class_weighting(self, class_weight, loss):
        weights = read_class_weights(class_weight, self.names)
        return lambda labels: weight_rows(labels, weights)


class LabelSets(NamedLabels):
    """A set of labels for each row, which may be empty: names or ids, or a 0/1 matrix (N, C)."""

    output_kind = "label sets"
    have_fixed_shape = True

    def read(self, labels):
        return read_label_sets(super().read(labels))

    def read_batch(self, labels):
        return read_batch_of_label_sets(super().read_batch(labels))

    def encode(self, labels):
        """float32 (N, C); see `encode_label_sets`."""
        return encode_label_sets(labels, self.names)

    def class_weighting(self, class_weight, loss):
        """The weight of a class counts only in rows with this label, as PyTorch's `pos_weight`."""
        if not getattr(loss, "is_labelwise", False):
            raise ValueError(
                "class_weight weights the labels of a row by themselves, which the loss "
                f"{type(loss).__name__} does not keep. Compile with loss=LabelwiseLoss(loss), "
                "which keeps the loss of each label."
            )
        weights = read_class_weights(class_weight, self.names)
        return lambda labels: 1.0 + labels * (weights - 1.0)


class Numbers(NamedLabels):
    """A number for each row, floats (N,), or T numbers (N, T)."""

    output_kind = "numbers"
    have_fixed_shape = True

    def encode(self, labels):
        """float32 (N, T); see `encode_targets`."""
        return encode_targets(labels, len(self.names))

    def class_weighting(self, class_weight, loss):
        raise ValueError(
            "A regression has no classes, so class_weight must be None. Pass `sample_weight`, a "
            "weight for each row."
        )


class Tags(NamedLabels):
    """A label for each word: a name or an id. Packed arrays have label ids (B, L).

    Args:
        names: as for `NamedLabels`. A tag in another form than most gives a warning.
    """

    output_kind = "classes"

    def __init__(self, names):
        super().__init__(names)
        warn_of_strangers(self.names, "label_names")

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
            "with entities. Convert the rows of tags by "
            f"keras_bert_suite.data.tag_schemes.convert_tags(rows, {self.scheme!r}), or build the "
            "task with scheme=None."
        )


class EntitySpans(NamedLabels):
    """Spans `(start, end, type)` of a row. Packed arrays have integers (B, M, 3)."""

    def encode(self, labels):
        """Object array (N,) of int32 arrays (M, 3), or int32 (N, M, 3) for packed arrays."""
        if labels.dtype == object:
            return encode_spans(labels, self.names)
        return check_span_arrays(labels, self.names)


class Scores(Labels):
    """A score for each row, or none, as the loss takes it.

    Attributes:
        loss: `EmbeddingLoss` of a compiled task; None for a loss of the user.
    """

    loss = None

    @property
    def are_needed(self):
        """bool, whether `fit` and `evaluate` need scores."""
        return self.loss is not None and self.loss.takes_scores

    def encode(self, labels):
        """float32 (N,)."""
        if is_tf_tensor(labels):
            return encode_targets(labels, 1)[:, 0] if _holds_numbers(labels) else _refuse(labels)
        scores = np.asarray(labels)
        if scores.dtype.kind not in "biuf":
            return _refuse(labels)
        scores = scores.astype("float32")
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.ndim != 1 or not np.isfinite(scores).all():
            got = f"an array of shape {scores.shape}"
            if scores.ndim == 1:
                row = int(np.argmin(np.isfinite(scores)))
                got = f"{scores[row]} at row {row}"
            raise ValueError(
                f"The scores of a TextEmbedder must be one finite number for each row, got {got}."
            )
        if self.loss is not None:
            self.loss.check_scores(scores)
        return scores


def _holds_numbers(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_integer


def _refuse(labels):
    raise ValueError(
        "The labels of a TextEmbedder are scores, got labels of type "
        f"{getattr(labels, 'dtype', type(labels).__name__)}. If they are numbers in texts, "
        'read_table(..., problem_type="regression") reads them. If they are texts: a tuple of two '
        "is read as (x, y). Pass columns of texts as x=(first_texts, second_texts), in datasets as "
        "a dict, and in `validation_data` as ((first_texts, second_texts), None)."
    )
