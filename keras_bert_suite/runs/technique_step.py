"""A training step by the technique of a model."""

from typing import Any

import keras
from keras import ops
from keras.src.losses.loss import unscale_loss_for_distribution

from keras_bert_suite.layers import SHIFT_ARGUMENT, BertEmbeddings
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.packed_layout import check_encodes_whole_batches
from keras_bert_suite.training import Technique
from keras_bert_suite.training.techniques.differentiation import apply_gradients, differentiate
from keras_bert_suite.training.techniques.technique import Batch, Gradients


def check_technique(model: Any, technique: Any) -> None:
    """Raises a ValueError if a technique is none, or moves embeddings and the model cannot."""
    if not isinstance(technique, Technique):
        raise ValueError(
            f"technique must be a Technique, such as FGM(1.0), or None, got {technique!r}."
        )
    if not technique.moves_embeddings:
        return
    name = type(technique).__name__
    if not isinstance(Encoder.of(model.backbone).embeddings, BertEmbeddings):
        raise ValueError(
            f"{name} moves the embeddings of tokens, and those of a "
            f"{type(model.backbone).__name__} cannot be moved. Take an encoder of this package, or "
            "drop `technique`."
        )
    problem = f"{name} cannot move the embeddings of all"
    check_encodes_whole_batches(model, problem, "`technique`")


def take_step(model: Any, *arguments: Any) -> Any:
    """A training step. Arguments and result are those of Keras' `train_step`."""
    *states, batch = arguments
    if keras.config.backend() == "jax":
        return _take_stateless_step(model, states[0], batch)
    if not getattr(model._compile_loss, "built", True):  # TensorFlow builds losses within a step.
        model._symbolic_build(data_batch=batch)
    gradients, logs = _make_gradients(model, batch)
    apply_gradients(model.optimizer, gradients, model.trainable_variables)
    return logs


def _take_stateless_step(model, state, batch):
    trainable, _, optimizer, _ = state
    gradients, logs, non_trainable, metrics = make_stateless_gradients(model, state, batch)
    trainable, optimizer = model.optimizer.stateless_apply(optimizer, gradients, trainable)
    return logs, (trainable, non_trainable, optimizer, metrics)


def make_stateless_gradients(model: Any, state: Any, batch: Any) -> tuple[Any, ...]:
    """The first part of a training step of JAX; the update of the weights follows.

    The result is the gradients of the trainable variables, the logs, and the new values of the
    other variables of the model and of those of its metrics.
    """
    kinds = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    pairs = [zip(kind, values, strict=True) for kind, values in zip(kinds, state, strict=True)]
    with keras.StatelessScope([pair for kind in pairs for pair in kind]) as scope:
        gradients, logs = _make_gradients(model, batch)
    _, non_trainable, _, metrics = (
        [scope.get_current_value(variable) for variable in kind] for kind in kinds
    )
    return gradients, logs, non_trainable, metrics


def _make_gradients(model, batch):
    """(the gradients of the trainable variables by the technique of a model, the logs)."""
    technique = model.technique or Technique()
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    # `train_on_batch` of PyTorch hands over arrays of NumPy.
    batch = Batch(keras.tree.map_structure(ops.convert_to_tensor, x), y, sample_weight)
    result = technique.gradients(_Passes(model, batch, technique).differentiate)
    num_rows = ops.shape(keras.tree.flatten(batch.x)[0])[0]
    # As Keras' own step does. Under a strategy of TensorFlow losses are scaled.
    model._loss_tracker.update_state(unscale_loss_for_distribution(result.loss), num_rows)
    return result.weights, model.compute_metrics(batch.x, y, result.outputs, sample_weight)


class _Passes:
    """The passes of a technique over a batch. What a pass changes, the next one goes on with."""

    def __init__(self, model, batch, technique):
        self.model = model
        self.technique = technique
        self.batch = batch
        self.weights = model.trainable_variables
        self.states = model.non_trainable_variables
        self.metrics = model.metrics_variables
        self.scale = model.optimizer.scale_loss(ops.ones(()))
        self.shifts = []
        if technique.moves_embeddings:
            shape = (*ops.shape(batch.x["token_ids"]), model.backbone.embeddings.embedding_dim)
            self.shifts = [ops.zeros(shape)]

    def differentiate(self, shift=None):
        """See `Technique.gradients`."""
        values = [variable.value for variable in self.weights]
        values += self.shifts if shift is None else [shift]
        gradients, (loss, outputs, states, metrics) = differentiate(self._run, values)
        _assign(self.states, states)
        if shift is None:  # The logs are about embeddings that are not moved.
            _assign(self.metrics, metrics)
        by_shift = gradients[-1] / self.scale if self.shifts else None
        return Gradients(gradients[: len(self.weights)], by_shift, loss, outputs)

    def _run(self, values):
        """(scaled loss, (loss, outputs, new states, new metrics)), as a pure function."""
        x = self.batch.x
        if self.shifts:
            *values, shift = values
            x = {**x, SHIFT_ARGUMENT: shift}
        kept = [*self.states, *self.metrics]
        mapping = [*zip(self.weights, values, strict=True), *((v, v.value) for v in kept)]
        with keras.StatelessScope(mapping, collect_losses=True) as scope:
            held = dict(scope.state_mapping)
            loss, outputs = self.technique.loss(self._compute_loss, self.batch._replace(x=x))
        states, metrics = (
            [_find_new(scope, held, v) for v in variables]
            for variables in (self.states, self.metrics)
        )
        return loss * self.scale, (loss, outputs, states, metrics)

    def _compute_loss(self, batch):
        """The `forward` that `Technique.loss` gets."""
        x, y, sample_weight = batch
        outputs = self.model(x, training=True)
        return self.model.compute_loss(x, y, outputs, sample_weight, training=True), outputs


def _find_new(scope, held, variable):
    """The value of a variable in a scope, or None if it is the one that the scope began with."""
    value = scope.get_current_value(variable)
    return None if value is held[id(variable)] else value


def _assign(variables, values):
    for variable, value in zip(variables, values, strict=True):
        if value is not None:
            variable.assign(value)
