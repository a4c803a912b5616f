"""Labels of rows: how users write them, and how a loss takes them."""

from keras_bert_suite.data.arrays import name_columns
from keras_bert_suite.heads.base.class_weights import (
    balance_classes,
    balance_label_sets,
    read_class_weights,
    weight_rows,
)
from keras_bert_suite.heads.base.label_encoding import (
    encode_labels,
    encode_targets,
    order_label_columns,
)
from keras_bert_suite.heads.base.label_sets import (
    encode_label_sets,
    read_batch_of_label_sets,
    read_label_sets,
)


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

    def of_output(self, name):
        """The `Labels` of an output of the model, which has a name if there are several."""
        return self

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

    def balance(self, labels):
        """dict of label name -> weight that balances the classes of encoded labels; {} if none."""
        return {}


class DictLabels(Labels):
    """Labels of several outputs: a dict, or a DataFrame, with a column for each.

    Args:
        parts: dict of the name of an output -> its `Labels`.
    """

    #: The name of an output in messages.
    noun = "output"

    def __init__(self, parts):
        self.parts = dict(parts)

    @property
    def have_fixed_shape(self):
        return all(part.have_fixed_shape for part in self.parts.values())

    def of_output(self, name):
        return self.parts.get(name, self)

    def read(self, labels):
        """dict of columns, one for each output."""
        return self._read(labels, "read")

    def read_batch(self, labels):
        return self._read(labels, "read_batch")

    def encode(self, labels):
        """dict of the name of an output -> its labels for the loss."""
        encoded = {}
        for name, part in self.parts.items():
            try:
                encoded[name] = part.encode(labels[name])
            except ValueError as error:
                raise ValueError(f"The {self.noun} {name!r}: {error}") from None
        return encoded

    def class_weighting(self, class_weight, loss):
        raise ValueError(
            f"The labels of several {self.noun}s have no common class_weight, so it must be None. "
            "Weight the losses, or pass `sample_weight`."
        )

    def _read(self, labels, method):
        if labels is None:
            return None
        columns = name_columns(labels)
        names = {*columns} if isinstance(columns, dict) else set()
        if names != {*self.parts}:
            got = f"the columns {', '.join(map(str, columns))}" if names else type(labels).__name__
            raise ValueError(
                f"Labels must be a dict or a DataFrame with a column for each {self.noun}, "
                f"{', '.join(self.parts)}, and no others; got {got}."
            )
        return {name: getattr(part, method)(columns[name]) for name, part in self.parts.items()}


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

    def balance(self, labels):
        return balance_classes(labels if labels.ndim == 1 else labels.argmax(axis=1), self.names)


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

    def balance(self, labels):
        return balance_label_sets(labels, self.names)


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
