"""Reads the metrics that a user passes to `compile` of a task."""

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.training.keras_forms import (
    NEED_TWO_NUMBERS,
    TAKE_SCORES,
    find_compared,
    name_kind,
)
from keras_bert_suite.training.losses import find_ids
from keras_bert_suite.training.metrics import ClassAccuracy, TokenAccuracy
from keras_bert_suite.training.output_forms import (
    OutputForm,
    find_shares,
    mark_classes,
)

#: The labels and the outputs that a metric gets, made of the task's.
Fit = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

_ADVICE = {
    "classes": "'accuracy', kbs.MacroF1(), keras.metrics.SparseTopKCategoricalAccuracy(k) or "
    "keras.metrics.Precision(class_id=1)",
    "label sets": "'accuracy' for whole sets, 'binary_accuracy' for single labels, 'Precision', "
    "'Recall', keras.metrics.AUC(multi_label=True) or kbs.MacroF1()",
    "numbers": "'mean_squared_error', 'mean_absolute_error' or 'R2Score'; `score` has the "
    "correlations over all rows",
}


def is_accuracy(metric: Any) -> bool:
    """Whether a metric is a name that Keras chooses an accuracy for."""
    return isinstance(metric, str) and metric.lower() in ("accuracy", "acc")


def is_metric_of_keras(metric: Any) -> bool:
    """Whether a metric is a metric of Keras, as an object or by its name, class or function."""
    if is_accuracy(metric):
        return True
    if isinstance(metric, str):
        metric = keras.metrics.get(metric)
    return not isinstance(metric, keras.losses.Loss) and name_kind(metric) is not None


def read_metric(metric: Any, form: OutputForm, only_counts: bool = False) -> Any:
    """Makes a metric get labels and outputs as it expects them.

    Args:
        metric: a metric, as `compile` takes it.
        form: the outputs and labels of the task.
        only_counts: bool, whether all predictions with a weight above 0 count the same. It is for
            the `metrics` of tasks on tokens, which Keras would give no weights.

    Returns:
        `FittedMetric` for a metric of Keras. A metric of the user stays as it is.

    Raises:
        ValueError: if a metric of Keras is for other labels, naming metrics for these.
    """
    if metric is None or form.kind not in _ADVICE:
        return metric
    if is_accuracy(metric):
        return FittedMetric(_make_accuracy(metric, form), form, _keep, only_counts)
    given, kind = metric, None
    if isinstance(metric, str):
        metric = keras.metrics.get(metric)
    elif inspect.isclass(metric):
        metric = metric()
    if not isinstance(metric, keras.losses.Loss):
        kind = name_kind(metric)
    if kind is None:
        _check_logits(metric, getattr(metric, "from_logits", None), form)
        if not only_counts:
            return given
        if not isinstance(metric, keras.metrics.Metric):
            metric = _TokenMean(metric)
        return FittedMetric(metric, None, _keep, only_counts)
    if not isinstance(metric, keras.metrics.Metric):
        metric = keras.metrics.MeanMetricWrapper(metric, name=metric.__name__)
    if find_compared(kind) == "scores":
        metric = _decide(metric, form, by_name=not isinstance(given, keras.metrics.Metric))
    if isinstance(given, str):
        metric.name = given
    fit = _choose_fit(metric, kind, form)
    return metric if fit is _keep else FittedMetric(metric, form, fit, only_counts)


class FittedMetric(keras.metrics.Metric):
    """A metric that gets labels and outputs in another form than the task has.

    It has the name and the results of `metric`. A file has the metric as the user passed it.

    Args:
        metric: `keras.metrics.Metric`.
        form: the form of the task, by which each prediction becomes a row; None keeps the arrays.
        fit: function(labels, outputs) that returns the input of `metric`.
        only_counts: bool, whether weights above 0 are 1.
    """

    def __init__(
        self,
        metric: keras.metrics.Metric,
        form: OutputForm | None,
        fit: Fit,
        only_counts: bool = False,
    ) -> None:
        super().__init__(name=metric.name, dtype=metric.dtype)
        self.metric = metric
        self.form = form
        self.fit = fit
        self.only_counts = only_counts
        if hasattr(metric, "_direction"):  # By which callbacks know whether more is better.
            self._direction = metric._direction

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        if self.only_counts and sample_weight is not None:
            sample_weight = ops.cast(ops.convert_to_tensor(sample_weight) > 0, self.metric.dtype)
        if self.form is not None:
            y_true, y_pred, sample_weight = self.form.flatten(y_true, y_pred, sample_weight)
        is_f1 = isinstance(self.metric, keras.metrics.FBetaScore)
        if is_f1 and sample_weight is not None and len(sample_weight.shape) > 1:
            raise ValueError(
                f"The metric {self.name} takes weights of rows (B,), got weights of the shape "
                f"{tuple(sample_weight.shape)}. With weights of single labels, such as those of "
                "`class_weight`, pass it as one of `metrics`, and not of `weighted_metrics`."
            )
        self.metric.update_state(*self.fit(y_true, y_pred), sample_weight=sample_weight)

    def result(self) -> Any:
        return self.metric.result()

    def reset_state(self) -> None:
        self.metric.reset_state()


class _TokenMean(keras.metrics.Mean):
    """The mean of a user's function over the predictions that count, each with the same part.

    The function returns a value for each prediction, each row, or the batch.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        name = getattr(function, "name", None) or getattr(function, "__name__", None)
        super().__init__(name=name)
        self.function = function

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        values = ops.convert_to_tensor(self.function(y_true, y_pred))
        if sample_weight is not None:
            # A value of a row, or of a batch, counts if one of its predictions counts.
            num_axes = len(values.shape)
            inner = tuple(range(num_axes, len(sample_weight.shape)))
            sample_weight = ops.max(sample_weight, axis=inner) if inner else sample_weight
            if num_axes == len(sample_weight.shape) > 1:
                values = ops.reshape(values, (-1,))
                sample_weight = ops.reshape(sample_weight, (-1,))
        super().update_state(values, sample_weight)


def _make_accuracy(name: str, form: OutputForm) -> keras.metrics.Metric:
    """The share of predictions that are right: classes, whole sets of labels, or tokens."""
    if form.kind == "numbers":
        _refuse(name, form)
    if form.kind == "label sets":
        metric = keras.metrics.MeanMetricWrapper(_are_equal_sets, name=name, form=form)
        metric._direction = "up"
        return metric
    return TokenAccuracy(name=name) if form.are_tokens else ClassAccuracy(name=name)


def _are_equal_sets(y_true: Tensor, y_pred: Tensor, form: OutputForm) -> Tensor:
    """float32 (N,), 1 where the labels above a probability of 0.5 are the right set."""
    found = form.find_probabilities(y_pred) > 0.5
    wanted = ops.cast(y_true, "float32") > 0.5
    return ops.cast(ops.all(ops.equal(found, wanted), axis=-1), "float32")


def _decide(metric: Any, form: OutputForm, by_name: bool) -> Any:
    """An F1 that finds sets by a threshold, and is one number if only its name was given."""
    changed: dict[str, Any] = {}
    if form.kind == "label sets" and metric.threshold is None:
        changed["threshold"] = 0.5
    if by_name and metric.average is None:
        changed["average"] = "macro"
    return type(metric).from_config({**metric.get_config(), **changed}) if changed else metric


def _choose_fit(metric: Any, kind: str, form: OutputForm) -> Fit:
    """The `Fit` of a metric of Keras."""
    compared = find_compared(kind)
    takes_logits = metric.get_config().get("from_logits")
    _check_logits(metric, takes_logits or None, form)
    find_scores = form.find_probabilities
    if takes_logits or kind in TAKE_SCORES:
        find_scores = _keep_outputs
    if form.kind == "numbers":
        is_single = kind in NEED_TWO_NUMBERS and form.size == 1
        if compared in ("distances", "numbers") and not is_single:
            return _keep
    elif form.kind == "label sets":
        if compared in ("marks", "binary", "distances", "counts", "scores"):
            return lambda labels, outputs: (labels, find_scores(outputs))
        if kind == "Accuracy":
            return lambda labels, outputs: (labels, find_scores(outputs) > 0.5)
    elif compared == "ids":
        return lambda labels, outputs: (find_ids(labels, outputs), find_scores(outputs))
    elif compared in ("rows", "distances", "counts"):
        return lambda labels, outputs: (find_shares(labels, outputs), find_scores(outputs))
    elif compared in ("marks", "binary") and form.size == 2 and not _counts_each_class(metric):
        return lambda labels, outputs: _compare_second(labels, outputs, find_scores)
    elif compared == "marks" or (compared == "scores" and form.size is not None):
        return lambda labels, outputs: (
            mark_classes(find_ids(labels, outputs), outputs),
            find_scores(outputs),
        )
    elif kind == "Accuracy" or (compared == "answers" and form.size is not None):
        return lambda labels, outputs: _answer(metric, labels, outputs)
    return _refuse(metric.name, form)


def _compare_second(
    labels: Tensor, outputs: Tensor, find_scores: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Marks (N, 1) of the second of two classes, and its probability, or its lead in logits."""
    ids = find_ids(labels, outputs)
    if find_scores is _keep_outputs:
        return ids[..., None], outputs[..., 1:] - outputs[..., :1]
    return ids[..., None], find_scores(outputs)[..., 1:]


def _answer(metric: Any, labels: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Class ids (N, 1) and the class with the highest score, or rows for an IoU that wants them."""
    ids = find_ids(labels, outputs)
    best = ops.cast(ops.argmax(outputs, axis=-1), "int32")
    wanted = (
        ids[..., None] if getattr(metric, "sparse_y_true", True) else mark_classes(ids, outputs)
    )
    return wanted, best[..., None] if getattr(metric, "sparse_y_pred", True) else outputs


def _counts_each_class(metric: Any) -> bool:
    """Whether a metric is for one of several classes, or for each of them."""
    names = ("class_id", "top_k")
    return getattr(metric, "multi_label", False) or any(
        getattr(metric, name, None) is not None for name in names
    )


def _check_logits(metric: Any, takes_logits: bool | None, form: OutputForm) -> None:
    if takes_logits is not None and bool(takes_logits) != form.from_logits:
        name = getattr(metric, "name", None) or getattr(metric, "__name__", repr(metric))
        raise ValueError(
            f"The outputs are {'logits' if form.from_logits else 'probabilities'}, got the metric "
            f"{name} with from_logits={takes_logits}. Build it with "
            f"from_logits={form.from_logits}."
        )


def _refuse(name: str, form: OutputForm) -> NoReturn:
    raise ValueError(
        f"The metric {name} is not for {form.name_labels()}. Pass {_ADVICE[form.kind]}. Or pass a "
        "function or a Metric of your own, which gets the encoded labels and the outputs."
    )


def _keep(labels: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor]:
    return labels, outputs


def _keep_outputs(outputs: Tensor) -> Tensor:
    return outputs
