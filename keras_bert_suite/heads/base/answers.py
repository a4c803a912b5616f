"""An answer for each row: a class, a set of labels, a number, a choice, a vector, a text."""

import itertools

import numpy as np

from keras_bert_suite.heads.base import averages
from keras_bert_suite.heads.base.label_scores import score_classes, score_label_sets, score_numbers
from keras_bert_suite.heads.base.label_sets import choose_thresholds
from keras_bert_suite.heads.base.probabilities import find_logits, softmax
from keras_bert_suite.heads.base.wrong_answers import (
    WrongAnswer,
    find_wrong_classes,
    find_wrong_sets,
)


class RowAnswers:
    """The outputs of the model themselves. The base of the other kinds of answers."""

    def decode(self, outputs, rows):
        """Turns outputs into the results of `predict`.

        Args:
            outputs: array, or structure of arrays, or list of arrays whose lengths differ. Element
                i, of each array in a structure, is the output for entry i of `rows`.
            rows: `Rows`, the windows that the model has seen; see `Task.predict_with`.

        Returns:
            an answer for each row, in the order of the rows.
        """
        return np.stack(outputs) if isinstance(outputs, list) else outputs

    #: function(outputs, rows) -> the input of `decode`, made of a batch, where all outputs would be
    #: too large to be kept; None keeps them.
    condense = None

    #: function(outputs, rows) -> the answers of `predict_labels`; None if rows have no labels.
    name = None

    #: function(outputs, rows) -> the answers of `predict_probabilities`; None if rows have none.
    decode_probabilities = None

    #: function(ops, outputs, packed) -> the answers of a server, a dict of tensors; None for a task
    #: that is not served. `ops` is `keras.ops`. `outputs` come from the model, in a graph or
    #: symbolic. `packed` is the dict of its inputs.
    serve = None

    def name_served(self, xp, served):
        """The answers of a SavedModel, made of the answers of `serve`: with names of labels.

        Args:
            xp: the namespace of array functions, see `preprocessing.packing`.
            served: dict of arrays. If it has `label_ids`, `labels` are added.
        """
        if "label_ids" not in served:
            return served
        return {**served, "labels": xp.take(xp.asarray(self.labels.names), served["label_ids"])}

    #: The outputs of an exported model for the answers -> the axes of each, after the batch.
    #: "labels" has one place for each label.
    exported: dict[str, tuple[str, ...]] = {}

    @staticmethod
    def read_exported(*arrays):
        """The outputs of the task, as the answers take them, made of the outputs `exported`."""
        return arrays[0]

    #: The forms in which an `Ensemble` can average outputs, its default first; see `averages.py`.
    mean_forms: tuple[str, ...] = ()

    #: Whether outputs are logits, and not probabilities.
    are_logits = True

    #: The axis of outputs that has a place for each label.
    label_axis = -1

    #: Whether outputs have a place for each label of the task. Otherwise rows may have others.
    are_of_fixed_labels = True

    #: Whether outputs stand at tokens, so that the tasks of an ensemble must cut texts alike.
    stand_at_tokens = False

    #: Whether `predict` takes the rows that `fit` takes.
    are_of_training_rows = True

    def to_probabilities(self, logits, xp):
        """The probabilities of outputs that are logits. `xp` is `numpy` or `keras.ops`."""
        return softmax(logits, xp)

    def to_logits(self, probabilities, xp):
        """The outputs that are logits, of their probabilities."""
        return find_logits(probabilities, xp)


class ClassAnswers(RowAnswers):
    """Classes, from logits or probabilities (N, C).

    Args:
        labels: `NamedLabels`.
        are_logits: bool, whether outputs are logits, and not probabilities.
        thresholds: for two classes, list of 2 floats whose sum is 1. The second class is the answer
            if its probability is above its threshold. None for the most probable class.
    """

    exported = {"probabilities": ("labels",)}
    mean_forms: tuple[str, ...] = (averages.PROBABILITIES, averages.LOGITS)

    def __init__(self, labels, are_logits=True, thresholds=None):
        self.labels = labels
        self.are_logits = are_logits
        self.thresholds = thresholds

    def choose(self, outputs, xp=np):
        """int (N,), the class that is the answer for each row.

        All that answers comes here: names, scores, exports. `xp` has the functions for arrays:
        `numpy`, or `keras.ops` in a graph.
        """
        if self.thresholds is None:
            return xp.argmax(outputs, axis=-1)
        return xp.where(self._find_second(outputs, xp) > self.thresholds[1], 1, 0)

    def _find_second(self, outputs, xp):
        """float32 (N,), the probability of the second of two classes."""
        if not self.are_logits:
            return outputs[..., 1]
        # The exponential of 80 does not overflow.
        return 1 / (1 + xp.exp(xp.minimum(outputs[..., 0] - outputs[..., 1], 80.0)))

    def tune_thresholds(self, outputs, rows, labels, place=1):
        """Sets the thresholds of two classes to those with the highest F1 of one of them.

        `place` is the id of this class.
        """
        labels = labels if labels.ndim == 1 else labels.argmax(axis=-1)
        likely = self._find_second(outputs, np)
        likely = likely if place else 1 - likely
        threshold = float(choose_thresholds((labels == place)[:, None], likely[:, None])[0])
        self.thresholds = [1 - threshold, threshold] if place else [threshold, 1 - threshold]

    def find_probabilities(self, outputs):
        """float (N, C), the probability of each class."""
        return softmax(outputs.astype("float64")) if self.are_logits else outputs

    def decode_probabilities(self, outputs, rows):
        """float32 (N, C), the probability of each class, or of each label of a set."""
        return self.find_probabilities(self.decode(outputs, rows)).astype("float32")

    def name(self, outputs, rows):
        """list of N str, the answer for each row."""
        return [self.labels.names[i] for i in self.choose(outputs)]

    def score(self, outputs, rows, labels):
        """dict of scores of outputs against encoded labels; see `score_classes`."""
        labels = labels if labels.ndim == 1 else labels.argmax(axis=-1)
        return score_classes(labels, self.choose(outputs), self.labels.names)

    def inspect(self, outputs, rows, labels):
        """list of `WrongAnswer` without texts, of outputs against encoded labels."""
        labels = labels if labels.ndim == 1 else labels.argmax(axis=-1)
        return find_wrong_classes(
            self.find_probabilities(outputs), labels, self.labels.names, self.choose(outputs)
        )

    def serve(self, ops, outputs, packed):
        """`probabilities` float32 (..., C) and `label_ids` int32 (...)."""
        return {
            "probabilities": ops.softmax(outputs, axis=-1) if self.are_logits else outputs,
            "label_ids": ops.cast(self.choose(outputs, xp=ops), "int32"),
        }


class LabelSetAnswers(ClassAnswers):
    """Sets of labels: each label whose probability is above its threshold.

    Args:
        labels, are_logits: as for `ClassAnswers`.
        thresholds: list of C floats.
    """

    def __init__(self, labels, are_logits=True, thresholds=None):
        super().__init__(labels, are_logits, thresholds or [0.5] * len(labels.names))

    def to_probabilities(self, logits, xp):
        return averages.sigmoid(xp, logits)

    def to_logits(self, probabilities, xp):
        return averages.find_log_odds(xp, probabilities)

    def name(self, outputs, rows):
        """list of N lists of str."""
        return [[self.labels.names[i] for i in np.flatnonzero(row)] for row in self.choose(outputs)]

    def score(self, outputs, rows, labels):
        """dict of scores; see `score_label_sets`."""
        return score_label_sets(labels > 0.5, self.choose(outputs), self.labels.names)

    def inspect(self, outputs, rows, labels):
        probabilities = self.find_probabilities(outputs)
        return find_wrong_sets(probabilities, labels > 0.5, self.choose(outputs), self.labels.names)

    def tune_thresholds(self, outputs, rows, labels):
        """Sets the threshold of each label to that with the highest F1 on these rows."""
        self.thresholds = choose_thresholds(labels, self.find_probabilities(outputs)).tolist()

    def serve(self, ops, outputs, packed):
        """`probabilities` float32 (B, C) and `is_label` bool (B, C)."""
        probabilities = ops.sigmoid(outputs) if self.are_logits else outputs
        return {"probabilities": probabilities, "is_label": self.choose_likely(probabilities, ops)}

    def name_served(self, xp, served):
        """Adds `labels` string (B, E), E the most labels of a row, and `num_labels` int32 (B,).

        Names of a row are in the order of the labels. "" fills the row up.
        """
        is_label = served["is_label"]
        counts = xp.sum(xp.cast(is_label), axis=1)
        order = xp.argsort(xp.cast(~is_label))[:, : xp.maximum(xp.max(counts), 0)]
        is_name = xp.arange(xp.shape(order)[1])[None, :] < counts[:, None]
        labels = xp.where(is_name, xp.take(xp.asarray(self.labels.names), order), "")
        return {**served, "labels": labels, "num_labels": counts}

    def choose(self, outputs, xp=np):
        """bool (N, C), whether a row has a label. `outputs` are in NumPy."""
        return self.choose_likely(self.find_probabilities(outputs), xp)

    def choose_likely(self, probabilities, xp):
        """bool (N, C), of the probabilities of labels. `xp` is as for `ClassAnswers.choose`."""
        return xp.greater(probabilities, np.array(self.thresholds, "float32"))

    def find_probabilities(self, outputs):
        """float32 (N, C), the probability of each label.

        The sigmoid of a served model may differ in the last bit.
        """
        if not self.are_logits:
            return outputs
        # Neither form of the sigmoid overflows where it is used.
        small = np.exp(-np.abs(outputs))
        return np.where(outputs < 0, small, np.float32(1)) / (1 + small)


class NumberAnswers(ClassAnswers):
    """Numbers: float32 (N, T)."""

    exported = {"scores": ("labels",)}
    mean_forms = (averages.NUMBERS,)
    decode_probabilities = None  # type: ignore[assignment]

    def name(self, outputs, rows):
        """float32 (N,), or (N, T) for several numbers in a row."""
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def score(self, outputs, rows, labels):
        """dict of scores; see `score_numbers`."""
        return score_numbers(labels, outputs)

    def inspect(self, outputs, rows, labels):
        """As for classes, but of all rows."""
        losses = ((labels - outputs) ** 2).mean(axis=1)
        pairs = (self.name(column, rows).tolist() for column in (labels, outputs))
        return [
            WrongAnswer(row, (), *pair, None, None, float(loss))
            for row, (*pair, loss) in enumerate(zip(*pairs, losses, strict=True))
        ]

    def serve(self, ops, outputs, packed):
        """`scores` float32 (B, T)."""
        return {"scores": outputs}


class DictAnswers(RowAnswers):
    """Answers of several outputs: a dict of the name of an output -> its answers.

    Args:
        parts: dict of the name of an output -> its `RowAnswers`. No name may be the beginning of
            another, up to a "_": exports have the outputs `NAME_probabilities` and so on.
    """

    def __init__(self, parts):
        self.parts = dict(parts)
        for name, other in itertools.permutations(self.parts, 2):
            if other.startswith(f"{name}_"):
                raise ValueError(
                    f"The output {other!r} begins as outputs of {name!r} in an export do. "
                    "Choose another name."
                )

    def split(self, outputs):
        """dict of the name of an output -> its part of the outputs of the model."""
        return outputs

    def decode(self, outputs, rows):
        return self._each("decode", outputs, rows)

    def choose(self, outputs, xp=np):
        """dict of the name of an output -> its answers; see `ClassAnswers.choose`."""
        return {n: self.parts[n].choose(part, xp=xp) for n, part in self.split(outputs).items()}

    def name(self, outputs, rows):
        """dict of the name of an output -> the names of its answers."""
        return self._each("name", outputs, rows)

    def score(self, outputs, rows, labels):
        """dict of the name of an output -> dict of its scores."""
        return {
            name: self.parts[name].score(part, rows, labels[name])
            for name, part in self.split(outputs).items()
        }

    @property
    def exported(self):
        return {
            f"{name}_{key}": tuple(f"{axis} of {name}" for axis in axes)
            for name, part in self.parts.items()
            for key, axes in part.exported.items()
        }

    def read_exported(self, *arrays):
        arrays = iter(arrays)
        return {
            name: part.read_exported(*itertools.islice(arrays, len(part.exported)))
            for name, part in self.parts.items()
        }

    def serve(self, ops, outputs, packed):
        """`NAME_KEY` for each `KEY` that the answers of an output serve."""
        split = self.split(outputs)
        served = {n: part.serve(ops, split[n], packed) for n, part in self.parts.items()}
        return {f"{n}_{key}": array for n, part in served.items() for key, array in part.items()}

    def name_served(self, xp, served):
        named = {}
        for name, part in self.parts.items():
            begin = f"{name}_"
            own = {k.removeprefix(begin): v for k, v in served.items() if k.startswith(begin)}
            own = part.name_served(xp, own)
            named.update({f"{name}_{key}": array for key, array in own.items()})
        return named

    def _each(self, method, outputs, rows):
        split = self.split(outputs)
        return {n: getattr(part, method)(split[n], rows) for n, part in self.parts.items()}
