"""Reads labelled texts from tables for `finetune`, which trains a `TextClassifier`."""

import collections

from .labelled_tables import check_labels, columns_of, find_label_names, read_examples
from .table_flags import choose_text_columns


class TextExamples:
    """Texts with a label each, for `finetune`.

    Args:
        values: the flags.
    """

    task = "TextClassifier"
    unit = "texts"

    def __init__(self, values):
        self._values = values
        self._columns = choose_text_columns(values)

    @property
    def input_names(self):
        """The names of the model's texts. For pairs they are the names of the columns."""
        if not self._values.text_pair_column:
            return ("text",)
        if not self._values.header:
            return ("text_a", "text_b")
        return (self._values.text_column, self._values.text_pair_column)

    def read(self, path):
        """Reads a `Table`, in which every row has its texts and a label."""
        return read_examples(self._values, path, self._columns)

    def find_label_names(self, train):
        """list of str, the labels of the training data."""
        return find_label_names(self._values, train)

    def check_labels(self, examples, label_names, source):
        """Raises a `ValueError` if there is a label that the training data does not have."""
        check_labels(self._values, examples, label_names, source)

    def columns_of(self, examples):
        """(texts, labels), as `fit` takes them."""
        return columns_of(examples)

    def balance(self, train):
        """The argument of `fit` that gives every label the same weight in the loss."""
        import numpy as np

        labels = columns_of(train)[1]
        weights = weigh_labels(labels)
        return {"sample_weight": np.array([weights[label] for label in labels], "float32")}

    def callbacks(self, dev):
        """The callbacks of `fit` that score the held-out data."""
        return []

    def describe(self, classifier, examples):
        """A line with the scores of a classifier."""
        scores = classifier.evaluate(*columns_of(examples), verbose=0, return_dict=True)
        return f"accuracy {scores['accuracy']:.4f}, loss {scores['loss']:.4f}"


def weigh_labels(labels):
    """dict of label -> weight that gives every label the same weight in the loss.

    >>> weigh_labels(["no", "no", "no", "yes"])
    {'no': 0.6666666666666666, 'yes': 2.0}
    """
    counts = collections.Counter(labels)
    return {label: len(labels) / (len(counts) * count) for label, count in counts.items()}
